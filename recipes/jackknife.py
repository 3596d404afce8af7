"""Lists of a treebank's sentences by parsers that have not seen them:

jackknife.py split FOLDS DIRECTORY TREEBANK...   a directory for each part, with its sentences and all other trees
jackknife.py join DIRECTORY LISTS...             the lists of the parts, in order, in the treebank's order
"""

import sys
from pathlib import Path

from rerank.base.errors import RerankError
from rerank.data.symbols import SymbolTable
from rerank.data.trees import escape_brackets, no_changes, parse_brackets, same_yield, yield_words
from rerank.readers.reader import SkipCount
from rerank.readers.trees.charniak import CharniakReader
from rerank.readers.trees.treebank import lists_of_trees, parse_pair, read_treebank, treebank_files


def split(folds: str, directory: str, *treebank: str) -> None:
    """Write the folds, which are consecutive parts of the treebank."""
    trees = [b" ".join(escape_brackets(tree.text).split()) for tree in read_treebank(treebank_files(*treebank))]
    symbols = SymbolTable()
    for fold in range(int(folds)):
        first, last = (len(trees) * k // int(folds) for k in (fold, fold + 1))
        place = Path(directory, f"{fold:02}")
        place.mkdir(parents=True)
        words = (yield_words(parse_brackets([tree], symbols), 0, symbols) for tree in trees[first:last])
        sentences = [" ".join(sentence).encode("utf-8", "surrogateescape") for sentence in words]
        train = trees[:first] + trees[last:]
        for name, lines in {"train.mrg": train, "gold.mrg": trees[first:last], "sentences.txt": sentences}.items():
            (place / name).write_bytes(b"".join(line + b"\n" for line in lines))


def join(directory: str, *files: str) -> None:
    """Write the lists of all folds to stdout, numbered; lists of other sentences than those due are refused."""
    reader, symbols, number, count = CharniakReader(), SymbolTable(), 0, SkipCount()
    places = sorted(Path(directory).iterdir())
    if len(places) != len(files):
        sys.exit(f"{directory}: {len(places)} folds, but {len(files)} files of lists; expected one for each")
    for place, file in zip(places, files, strict=True):
        for read in lists_of_trees(reader.for_columns(None, normal=True), file, [place / "gold.mrg"]):
            nbest, trees, gold = parse_pair(read, symbols, no_changes())
            count.good(nbest)
            if same_yield(trees, gold, 0, symbols.intern("-NONE-")) >= 0:
                sys.exit(
                    f"{file}:{nbest.line}: not the list of its sentence, {' '.join(yield_words(gold, 0, symbols))!r}"
                )
            reader.write(sys.stdout.buffer, nbest.replace(id=str(number)))
            number += 1


if __name__ == "__main__":
    commands = {"split": split, "join": join}
    if len(sys.argv) < 4 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    try:
        commands[sys.argv[1]](*sys.argv[2:])
    except (RerankError, OSError, ValueError) as error:
        sys.exit(str(error))
