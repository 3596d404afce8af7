"""Levenshtein alignments of all candidates of a list with its references: substitutions, insertions, deletions."""

import numpy as np

from rerank.kernels.compile import kernel

# Columns of a candidate's row: what it has, or how much more than an empty text compared with the shortest reference.
SUBSTITUTIONS, INSERTIONS, DELETION_SHIFT, UNIT_SHIFT = range(4)
COLUMNS = 4


@kernel
def align(text: np.ndarray, reference: np.ndarray, edits: np.ndarray, substitutions: np.ndarray) -> int:
    """Edits that turn ``reference`` into ``text`` (units as uint64), and how many of them are substitutions.

    ``edits`` and ``substitutions`` (int32, longer than what is left of the text between common ends) are scratch: a
    row of the table edits[j] = distance of the reference's first i units and the text's first j, and its
    substitutions. The latter are those of one best alignment, read from the end: a deletion if it is as good as
    anything else, then an insertion unless the table decreases there, then a match or substitution. Returns
    edits << 32 | substitutions.
    """
    begin, n, m = 0, reference.shape[0], text.shape[0]
    while begin < n and begin < m and reference[begin] == text[begin]:
        begin += 1
    while n > begin and m > begin and reference[n - 1] == text[m - 1]:
        n -= 1
        m -= 1
    n, m = n - begin, m - begin
    for j in range(m + 1):
        edits[j], substitutions[j] = j, 0
    for i in range(1, n + 1):
        unit = reference[begin + i - 1]
        diagonal, diagonal_substitutions = edits[0], substitutions[0]
        edits[0] = i
        for j in range(1, m + 1):
            above, above_substitutions = edits[j], substitutions[j]
            differ = 1 if unit != text[begin + j - 1] else 0
            best = min(diagonal + differ, above + 1, edits[j - 1] + 1)
            if best == above + 1:  # deletion
                found = above_substitutions
            elif edits[j - 1] < diagonal:  # insertion
                found = substitutions[j - 1]
            else:
                found = diagonal_substitutions + differ
            edits[j], substitutions[j] = best, found
            diagonal, diagonal_substitutions = above, above_substitutions
    return (int(edits[m]) << 32) | int(substitutions[m])


@kernel
def edit_rows(
    first: np.ndarray, units: np.ndarray, references: int, edits: np.ndarray, substitutions: np.ndarray,
    rows: np.ndarray,
) -> int:  # fmt: skip
    """Edits of the candidates of a list → ``rows`` (float64 [N, COLUMNS]); returns the shortest reference's length.

    ``first, units`` are the units of the references, then of the candidates: those of text t are ``units[first[t]:
    first[t + 1]]`` (uint64). A candidate is aligned with the reference that takes the fewest edits; of several, with
    the longest. ``edits`` and ``substitutions`` are the scratch of ``align``.
    """
    shortest = first[1] - first[0]
    for r in range(1, references):
        shortest = min(shortest, first[r + 1] - first[r])
    for y in range(rows.shape[0]):
        t = references + y
        text = units[first[t] : first[t + 1]]
        fewest, replaced, length = -1, 0, 0
        for r in range(references):
            reference = units[first[r] : first[r + 1]]
            found = align(text, reference, edits, substitutions)
            count = found >> 32
            if fewest < 0 or count < fewest or (count == fewest and reference.shape[0] > length):
                fewest, replaced, length = count, found & 0xFFFFFFFF, reference.shape[0]
        inserted = (fewest - replaced + text.shape[0] - length) // 2
        rows[y, SUBSTITUTIONS] = replaced
        rows[y, INSERTIONS] = inserted
        rows[y, DELETION_SHIFT] = fewest - replaced - inserted - shortest
        rows[y, UNIT_SHIFT] = length - shortest
    return int(shortest)
