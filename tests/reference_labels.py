"""Slow twins of the templates of label sequences, and a list for features written out by hand."""

from collections import Counter

from reference_texts import Features, Lines, One, joined, named, ngrams

from rerank.contrib.structures.metrics import has_spans, spans_of

DOG = Lines(
    [], [One(["The/B-NP", "dog/I-NP", "barks/O"], base=-1.0), One(["The/O", "dog/B-NP", "barks/B-VP"], base=-2.0)]
)


def pairs(lines: Lines) -> list[list[tuple[str, str]]]:
    """Words and labels of every candidate; none where the first has no labels."""
    first = lines.candidates[0].words if lines.candidates else []
    if not (first and all("/" in word[1:-1] for word in first)):
        return [[] for _ in lines.candidates]
    split = [[word.rpartition("/") for word in one.words] for one in lines.candidates]
    return [[(word, label) for word, _, label in words] for words in split]


@named("LabelNGram")
def label_ngrams(lines: Lines, n: str = "1", words: str = "none") -> list[Features]:
    found = []
    for sentence in pairs(lines):
        shown = [f"{label} {word}" for word, label in sentence] if words == "all" else [label for _, label in sentence]
        edges = [("", "<s>"), *sentence, ("", "</s>")] if n != "1" else sentence
        shown = ["<s>", *shown, "</s>"] if n != "1" else shown
        last = [word for word, _ in edges]
        grams = [(joined(gram), last[i + int(n) - 1]) for i, gram in enumerate(ngrams(shown, int(n)))]
        there = bool(sentence) or any(pairs(lines))
        found.append(
            dict(Counter(f"{gram} {word}".strip() if words == "last" else gram for gram, word in grams if there))
        )
    return found


@named("LabelSpan")
def spans(lines: Lines, see: str = "words") -> list[Features]:
    found = []
    for sentence in pairs(lines):
        labels = [label for _, label in sentence]
        words = ["<s>", *(word for word, _ in sentence), "</s>"]
        names = []
        for first, end, kind in spans_of(labels) if has_spans(labels) else []:
            inside = words[first + 1 : end + 1]
            seen = {
                "words": joined(inside),
                "ends": joined([inside[0], inside[-1]]),
                "outside": joined([words[first], words[end + 1]]),
                "length": str(min(len(inside), 9)),
            }
            names.append(f"{kind} {seen[see]}")
        found.append(dict(Counter(names)))
    return found


@named("SpanNGram")
def span_ngrams(lines: Lines, n: str = "3", words: str = "True") -> list[Features]:
    found, every = [], []
    for sentence in pairs(lines):
        labels = [label for _, label in sentence]
        begins = {first: (end, kind) for first, end, kind in (spans_of(labels) if has_spans(labels) else [])}
        items, at = [], 0
        while at < len(sentence):
            end, item = begins.get(at, (at + 1, sentence[at][0] if words == "True" else "(nothing)"))
            items.append(item)
            at = end
        every.append(bool(begins))
        grams = [[*items, "</s>"][i : i + int(n)] for i in range(len(items))]
        found.append(dict(Counter(map(joined, grams))))
    return found if any(every) else [{} for _ in found]
