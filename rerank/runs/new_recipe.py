"""A recipe for somebody's files: what they hold is found out by looking at them."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from rerank.base.errors import DataError
from rerank.readers.base import NBestList, lists_of, readers
from rerank.readers.detection import recognised
from rerank.readers.given.nbest import GAIN
from rerank.readers.lines import LineReader
from rerank.readers.sequences.base import TaggedSentence, sequence_readers
from rerank.readers.several import make_reader
from rerank.readers.streams import open_stream
from rerank.readers.texts.text_list import TextList
from rerank.recipes.loading import read_settings
from rerank.storage.bounded_yaml import read_yaml

TRAIN, DEV = ("train",), ("dev", "valid", "val")  # what names of files say of their splits
SPEECH = "kaldi", "espnet"  # readers of transcripts
SEARCH = "letor", "trec"  # readers of search results
SENTENCES = "conllu", "slash", "conll"  # readers of sentences with labels, the pickiest first
EXAMPLE = re.compile(rb"[-+]?[\d.]+(?: +\d+:[-+.\deE]+)+ *(?:#.*)?$")  # a line of svmlight
LOOK = 50  # lines or sentences


@dataclass(frozen=True)
class NewRecipe:
    """A recipe as text, with comments, and its task; what it was made of, in words; and a file to try its model on."""

    text: str
    task: str
    found: str
    tried: str


def new_recipe(
    name: str, files: Sequence[str], references: Sequence[str] = (), sources: Sequence[str] = ()
) -> NewRecipe:
    """The recipe ``name`` for lists in ``files``, of which those are trained on that are called so, or the first.

    references, sources: files with the references (gold trees) and the inputs of each.

    Raises
    ------
    DataError: a file of no format that is known, files of several, or nothing that says which candidates are good.
    """
    train, dev, tests = _splits(files)
    splits = {path: _split_of(path, files) for path in files}
    if (made := _no_lists(name, files, splits)) is not None:
        return made
    format_name, shown = _looked_at(files)
    trees = not isinstance(shown, TextList)
    root = os.path.commonpath([os.path.dirname(path) or "." for path in files]) or "."
    lines = [
        f"# Made for {', '.join(files)}. rerank run {name}.yaml",
        f"name: {name}",
        "",
        "data:",
        f"  root: {_quoted(root)}",
        f"  nbest: {_quoted(_pattern(files, splits, root))}",
        f"  reader: {format_name}",
        f"  train: {_quoted(splits[train])}",
        f"  dev: {_quoted(splits[dev])}        # epochs and settings are chosen on it" if dev else
        "  dev: null         # a part of the training lists takes its place",
        f"  tests: [{', '.join(_quoted(splits[path]) for path in tests)}]",
    ]  # fmt: skip
    gains = not trees and GAIN in shown.names
    task = "parse" if trees else "ranking" if gains else "speech" if format_name in SPEECH else "translation"
    if trees:
        if not references:
            raise DataError("lists of trees need gold trees; name their files with --references", path=files[0])
        lines.append(f"  gold: {_quoted(_beside(references, files, splits, 'references'))}")
    else:
        assert isinstance(shown, TextList)
        if not (gains or references or shown.references):
            message = "the lists say neither which candidates are good (a gain) nor what is right (a reference)"
            raise DataError(f"{message}; add a gain to each candidate, or name --references", path=files[0])
        for key, given in (("references", references), ("sources", sources)):
            kept = f"null  # {'not needed' if key == 'references' and gains else 'in the lists, or unknown'}"
            lines.append(f"  {key}: {_quoted(_beside(given, files, splits, key)) if given else kept}")
        if gains and shown.answers is None and format_name not in SEARCH:
            lines.append(
                "  # answer: last-number  # samples vote by their answers: boxed, letter, text, json:KEY, regex:..."
            )
    about = {
        "parse": "PARSEVAL F",
        "ranking": "NDCG" if format_name in SEARCH else "the gain",
        "translation": "BLEU",
        "speech": "the word error rate",
    }
    other = "  # or speech, for word error rates" if task == "translation" else ""
    order = ["metric: ndcg@10  # or map, mrr, recall@100; gain: of the first alone"] if format_name in SEARCH else []
    lines[2:2] = [f"task: {task}{other}", *order]
    lines += [
        "",
        "# What else may be set, with what it is by default: rerank list; docs/recipes.md",
        "# features: {set: dense}  # the numbers alone" if not trees else "# features: {set: cj2005}",
        "# learner: {name: maxent}" if task in ("ranking", "speech") else "# learner: {name: vrda, loss: hinge}",
        "# training: {epochs: 10}",
    ]
    kind = f"{'trees' if trees else 'texts'} in the format {format_name}, measured by {about[task]}"
    return _settled(lines, kind, train, tests)


def _no_lists(name: str, files: Sequence[str], splits: dict[str, str]) -> NewRecipe | None:
    """The recipe for sentences with labels, or for examples of a svmlight file; None where the files are neither."""
    train, dev, tests = _splits(files)
    head = [f"# Made for {', '.join(files)}. rerank run {name}.yaml", f"name: {name}"]
    root = os.path.commonpath([os.path.dirname(path) or "." for path in files]) or "."
    if all(_starts_with_examples(path) for path in files):
        where = (
            [f"  train: {_quoted(train)}", f"  test: {_quoted(tests[0])}"] if tests else [f"  path: {_quoted(train)}"]
        )
        lines = [*head, "task: classification", "", "data:", *where, "", "learner: {name: arow}  # or one that suits:",
                 "# rerank list learners; docs/choosing.md"]  # fmt: skip
        return _settled(lines, "examples in the format svmlight, measured by errors", train, tests)
    reader = next((each for each in SENTENCES if all(_holds_sentences(each, path) for path in files)), None)
    if reader is None or any(recognised(path, readers) for path in files):
        return None
    lines = [
        *head, "task: tagging", "", "data:", f"  root: {_quoted(root)}",
        f"  file: {_quoted(_pattern(files, splits, root))}",
        f"  reader: {reader}  # the last column, or the tag, is the label; docs/tagging.md says how to name another",
        f"  train: {_quoted(splits[train])}", f"  dev: {_quoted(splits[dev]) if dev else 'null'}",
        f"  tests: [{', '.join(_quoted(splits[path]) for path in tests)}]", "",
        "# training: {epochs: 10}", "# rerank: {n: 20, folds: 5}  # a second stage: features of whole sequences",
    ]  # fmt: skip
    return _settled(lines, f"sentences with labels in the format {reader}", train, tests)


def _settled(lines: list[str], found: str, train: str, tests: list[str]) -> NewRecipe:
    """A recipe of these lines, which are checked."""
    text = "\n".join(lines) + "\n"
    return NewRecipe(text, read_settings(read_yaml(text)).task, found, (tests or [train])[0])


def _starts_with_examples(path: str) -> bool:
    """Whether the first lines of a file are examples of svmlight, without lists (qid)."""
    with open_stream(path) as stream:
        lines = [line for _, line in islice(LineReader(stream), LOOK)]
    return bool(lines) and all(EXAMPLE.match(line) for line in lines)


def _holds_sentences(reader: str, path: str) -> bool:
    """Whether the first sentences that a reader finds in a file have labels, fewer different ones than tokens."""
    try:
        found = list(islice(sequence_readers.get(reader)().read(path), LOOK))
    except DataError:
        return False
    sentences = [each for each in found if isinstance(each, TaggedSentence)]
    labels = [label for each in sentences for label in each.labels]
    long = sum(len(each.tokens) > 1 for each in sentences)
    return len(sentences) == len(found) > 0 and 2 * long > len(found) and 2 * len(set(labels)) < len(labels)


def _looked_at(files: Sequence[str]) -> tuple[str, NBestList]:
    """The format of the files, and their first list with candidates."""
    names = {path: recognised(path, readers) for path in files}
    for path, name in names.items():
        if name is None:
            other = next(lists_of(make_reader("jsonl", "reader"), path), None)  # says what it seems to be, or raises
            advice = getattr(other, "advice", "") or "docs/formats.md has those that are known"
            raise DataError(f"no format that can be told from the file alone; {advice}", path=path)
    if len(found := set(names.values())) > 1:
        said = ", ".join(f"{path} {name}" for path, name in names.items())
        raise DataError(f"found the formats {', '.join(map(str, sorted(map(str, found))))} ({said}); expected one")
    name = str(names[files[0]])
    for nbest in lists_of(make_reader(name, "reader"), files[0]):
        if isinstance(nbest, NBestList) and len(nbest):
            return name, nbest
    raise DataError("no list with candidates", path=files[0])


def _splits(files: Sequence[str]) -> tuple[str, str | None, list[str]]:
    """The files to train on, to choose on, and to test on."""

    def called(words: Sequence[str]) -> str | None:
        return next((path for path in files if any(word in os.path.basename(path).lower() for word in words)), None)

    train = called(TRAIN) or files[0]
    dev = next((path for path in [called(DEV)] if path != train), None)
    return train, dev, [path for path in files if path not in (train, dev)]


def _split_of(path: str, files: Sequence[str]) -> str:
    """The name of a file's split: what it does not share with the others, or its name without endings."""
    name = os.path.basename(path)
    if len(files) == 1:
        return re.split(r"\.(?=[A-Za-z])", name, maxsplit=1)[0] or name
    names = [os.path.basename(each) for each in files]
    before, after = (os.path.commonprefix(each) for each in (names, [each[::-1] for each in names]))  # noqa: RUF071
    return name[len(before) : len(name) - len(after)].strip(".-_") or name


def _pattern(files: Sequence[str], splits: dict[str, str], root: str) -> str:
    """Where the lists of a split are, as recipes say it."""
    patterns = {os.path.relpath(path, root).replace(splits[path], "{split}") for path in files}
    if len(patterns) > 1:
        raise DataError(
            f"found {', '.join(files)}; expected files whose names differ in one place, as train, dev and test do"
        )
    return os.path.join("{root}", patterns.pop())


def _beside(given: Sequence[str], files: Sequence[str], splits: dict[str, str], key: str) -> str:
    """Where what goes with the lists of a split is."""
    if len(given) != len(files):
        raise DataError(
            f"found {len(given)} files of {key} for {len(files)} of lists; expected one for each, in their order"
        )
    patterns = {path.replace(splits[of], "{split}") for path, of in zip(given, files, strict=True)}
    if len(patterns) > 1:
        raise DataError(
            f"found {', '.join(given)}; expected files called like those of the lists: {', '.join(splits.values())}"
        )
    return patterns.pop()


def _quoted(text: str) -> str:
    """A text as YAML has it, in quotes where it needs some."""
    return (
        text if re.fullmatch(r"[\w./-]*[\w/]", text) and not text[0].isdigit() else '"' + text.replace('"', '\\"') + '"'
    )
