"""Make the quickstart data: N-best parses of invented English sentences, with their gold trees.

    python data/make_quickstart.py [--output DIR] [--seed N]

1. `quickstart_grammar` draws gold trees from a lexicalised grammar with true ambiguities (attachment of phrases, scope
   of coordinations, bracketing of noun compounds), whose right reading the words decide, in all but a few cases.
2. `quickstart_parser` estimates an unlexicalised PCFG on the training trees and lists the best parses of each sentence
   from its parts of speech alone.
3. The lists and the gold trees are written as `{train,dev,test}.nbest.gz` and `{train,dev,test}.gold.gz`.

The base parser cannot know that one eats with a spoon and that a man has a beard; a reranker that sees pairs of heads
can. Because some choices contradict the preferences on purpose, no reranker reaches the oracle.

Same seed, same bytes: each sentence has its own random stream, costs are whole numbers, ties are ordered by text, and
the gzip header holds neither time nor name.
"""

import argparse
import gzip
import io
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from nltk import PCFG, Production, Tree
from quickstart_grammar import Writer
from quickstart_parser import NBestParser, estimate, rules

SIZES = {"train": 1500, "dev": 300, "test": 300}
"""Lists of each split."""

LIST_SIZE = 25
"""Most candidates of a list."""

SEED = 1

HERE = Path(__file__).resolve().parent


def flat(tree: Tree) -> str:
    """The tree in brackets on one line."""
    inner = " ".join(flat(child) if isinstance(child, Tree) else child for child in tree)
    return f"({tree.label()} {inner})"


def treebank(seed: int) -> dict[str, list[Tree]]:
    """The gold trees of each split. No sentence comes twice; dev and test use only rules that train has."""
    seen: set[tuple[str, ...]] = set()
    known: set[Production] = set()
    trees: dict[str, list[Tree]] = {}
    for split, size in SIZES.items():
        trees[split] = []
        for number in range(1, size + 1):
            writer = Writer(f"{seed}/{split}/{number}")
            tree = writer.sentence()
            while tuple(tree.leaves()) in seen or (split != "train" and not known.issuperset(rules(tree))):
                tree = writer.sentence()
            seen.add(tuple(tree.leaves()))
            trees[split].append(tree)
        if split == "train":
            known.update(rule for tree in trees[split] for rule in rules(tree))
    return trees


def gold_text(trees: list[Tree], limit: int | None = None) -> str:
    """The first `limit` (default: all) gold trees, one a line."""
    return "".join(f"{flat(tree)}\n" for tree in trees[:limit])


def nbest_text(split: str, trees: list[Tree], grammar: PCFG, limit: int | None = None) -> str:
    """The lists of the first `limit` (default: all) sentences.

    A list is a line `N<TAB>id`, N times a line with the log probability and one with the tree, and an empty line.
    """
    parser = NBestParser(grammar, LIST_SIZE)
    sentences = [tree.pos() for tree in trees[:limit]]
    lines: list[str] = []
    with ProcessPoolExecutor() as pool:
        for number, candidates in enumerate(pool.map(parser.parse, sentences, chunksize=8), start=1):
            lines.append(f"{len(candidates)}\t{split}-{number}")
            for score, text in candidates:
                lines += [f"{score:.4f}", text]
            lines.append("")
    return "".join(f"{line}\n" for line in lines)


def write(path: Path, text: str) -> None:
    """Write a gzip file that depends on the text alone, under a temporary name first."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as stream:
        stream.write(text.encode())
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(buffer.getvalue())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Make the quickstart data: N-best parses and gold trees.")
    parser.add_argument("--output", type=Path, default=HERE / "quickstart", help="directory (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="of all random choices (default: %(default)s)")
    options = parser.parse_args(arguments)
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        trees = treebank(options.seed)
        grammar = estimate(trees["train"])
        for split in SIZES:
            write(options.output / f"{split}.gold.gz", gold_text(trees[split]))
            write(options.output / f"{split}.nbest.gz", nbest_text(split, trees[split], grammar))
            print(f"{split}: {len(trees[split])} lists in {options.output}")
    except OSError as error:
        parser.exit(1, f"{parser.prog}: cannot write to {options.output}: {error}; choose another --output\n")


if __name__ == "__main__":
    main()
