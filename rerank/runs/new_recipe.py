"""A recipe for somebody's files: what they hold is found out by looking at them."""

import glob
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest

from rerank.base.encoding import decoded, is_name
from rerank.base.errors import DataError
from rerank.base.registry import import_object
from rerank.extraction.kinds import content_of
from rerank.extraction.list_checks import UNSPACED_LETTERS, UNSUITED, Inputs, doubts_of_lists, inputs_of, shared
from rerank.learn.folds import FOLDS
from rerank.metrics.gain import LOWER, REWARD
from rerank.readers.detection import Account, format_of, recognise
from rerank.readers.lists import GAIN, Lists, one_by_one
from rerank.readers.memory.reading import ListFile, read
from rerank.readers.reader import lists_of, make_reader, readers, settings_of, with_judgements
from rerank.readers.texts.roles import ROWS, parse_roles, with_roles
from rerank.readers.texts.text_files import TextFile, lists_of_texts
from rerank.recipes.loading import TaskFiles, read_settings, tasks
from rerank.recipes.recipe import TASKS, ListRecipe
from rerank.recipes.settings import Settings, as_settings, literal
from rerank.runs.corpora import spelling_doubt
from rerank.storage.documents import as_json, read_yaml
from rerank.storage.places import is_url
from rerank.storage.streams import read_once

log = logging.getLogger("rerank")
TRAIN, DEV = ("train",), ("dev", "valid", "val")  # what names of files say of their splits
MEASURES = {
    "parseval": "PARSEVAL F", "gain": "the gain", "ndcg": "NDCG", "bleu": "BLEU", "wer": "the word error rate",
    "cer": "the character error rate", "match": "exact match", "counts": "F of counts",
}  # fmt: skip
SAMPLE_LISTS, MAX_NAME_WORDS = 100, 3  # lists that tell how texts are written; words of a text that is like a name
ATTACHED_MARK = re.compile(rb"\w[.,!?;:](?:\s|$)")  # a mark that no blank parts from its word
TASK_HINTS = {
    "translation": "  # or speech, for word error rates; metric: match, of whole texts",
    "speech": "  # or translation, for BLEU; of phones wer is the phone error rate",
}
HINTS = {
    "features": "  # {set: dense}: the numbers of the lists alone",
    "learner": "  # the weight of the base score is found on held-out lists",
}
LEARNED_FUSION = (
    "# decode: {kinds: [mbr, fuse, learned]}  # brackets judged by trees: about .5 F better and, with 9,500 lists, 3 "
    "minutes longer; needs scikit-learn"
)
ANSWERS = "  # answer: last-number  # samples vote by their answers: boxed, letter, text, json:KEY, regex:..."
ENDINGS, RATIO = (".gz", ".bz2", ".xz", ".zst"), 6  # of compressed files; how much smaller these are
BYTES_PER_MINUTE = 60 * 3e6  # 29,000 lists of translations and 9,500 of parses, on two cores


@dataclass(frozen=True)
class NewRecipe:
    """A recipe as text, with comments, and its task; what it was made of, in words; the arguments of a command by
    which its model is tried; and how long a run takes and what it shows."""

    text: str
    task: str
    description: str
    arguments: tuple[str, ...]
    shows: str


def new_recipe(
    name: str,
    files: Sequence[str],
    references: Sequence[str] = (),
    sources: Sequence[str] = (),
    reader: str | None = None,
    roles: str | None = None,
    metric: str | None = None,
) -> NewRecipe:
    """The recipe ``name`` for lists in ``files``, of which those are trained on that are called so, or the first.

    references, sources: files with the references (gold trees) and the inputs of each; of runs of TREC, the judgements.
    reader, roles, metric: the format of the lists, what keys of JSON are, and what is measured, where that is known.

    Raises
    ------
    DataError: a file of no format that is known, files of several, or nothing that says which candidates are good.
    """
    for path in (*references, *sources):
        if not (is_url(path) or os.path.exists(path) or glob.has_magic(path)):
            raise DataError("no such file; check the name", path=path)
    every, (groups, common) = files, _systems(files, sources, reader, roles)
    if len(groups) < len(every):  # of each group the first file stands for all
        firsts = [every.index(path) for path, *_ in groups]
        references, sources = ([of[k] for k in firsts] if len(of) == len(every) else of for of in (references, sources))
        files = [every[k] for k in firsts]
    splits = _names(files)
    train, dev, tests = _splits(files, splits)
    head = [f"# Made for {_listing(every)}. rerank run {_listing([name])}.yaml", f"name: {_quote(name)}"]
    root, pattern = _common_folder(files)[0], partial(_pattern, files, files, splits)
    about, first = TaskFiles(files, train, dev, tests, splits, root, pattern, _quote, reader), [*tests, *files][0]
    for _, each in tasks:
        if each.new and (content := import_object(each.new)(about)):
            return _checked_recipe([*head, *content[1:]], content[0], about, [first])
    command = [first, "--sources", sources[files.index(first)]] if sources else [first]
    fused = (groups, common) if len(groups) < len(every) else None
    return _recipe_of_lists(head, about, fused, references, sources, roles, metric, command)


def _recipe_of_lists(
    head: list[str], about: TaskFiles, fused: tuple[list[list[str]], str] | None, references: Sequence[str],
    sources: Sequence[str], roles: str | None, metric: str | None, command: list[str],
) -> NewRecipe:  # fmt: skip
    """The recipe for files of lists or, ``fused``, for the groups of files over the same inputs of which these are the
    first; command: the arguments by which its model is tried."""
    files, splits, reader = about.paths, about.splits, about.reader
    settings, nbest = _detect(files, reader, roles)
    trees, format_name = nbest.of_trees, str(settings["name"])
    use, qrels = readers.get(format_name).use if format_name in readers else "", _needs_qrels(format_name)
    settings, references = with_judgements(settings, references)
    if qrels and not settings.get("qrels"):
        message = "runs need their judgements; name one file of qrels, for all of them, with --references"
        raise DataError(message, path=files[0])
    form = f"{{name: {format_name}, qrels: {_quote(settings['qrels'])}}}" if qrels else reader or format_name
    place, pattern = _quote(about.pattern()), partial(_pattern, files=files, splits=splits)
    account, lists = _account_of(files[0], settings, references)
    if fused is not None:
        place, form, account, command = _fuse(*fused, form, references, pattern, command)
    gains = not trees and (GAIN in nbest.names or qrels)
    source = sources or (not trees and nbest.source)
    speech = use == "speech" or (format_name in ROWS and not source)  # translations have a source
    task = "parse" if trees else "ranking" if gains else "speech" if speech else "translation"
    data = [
        "",
        "data:",
        f"  root: {_quote(about.root)}",
        f"  nbest: {place}",
        f"  reader: {form}",
        *([f"  roles: {as_json(settings['roles'])}"] if roles else []),
        f"  train: {_quote(splits[about.train])}",
        f"  dev: {_quote(splits[about.dev])}        # epochs and settings are chosen on it" if about.dev else
        "  dev: null         # a part of the training lists takes its place",
        f"  tests: [{', '.join(_quote(splits[path]) for path in about.tests)}]"
        + ("" if about.tests else f"  # so the training lists are cross-validated, in {FOLDS} parts"),
        *_sides(nbest, gains, references, sources, pattern),
        *([ANSWERS] if gains and nbest.answers is None and use != "search" else []),
    ]  # fmt: skip
    measure = _measure(task, use, lists, metric) or (_lower(lists) if gains else [])
    recipe = read_settings(read_yaml("\n".join([*head, f"task: {task}", *measure, *data])))
    assert isinstance(recipe, ListRecipe)
    doubts = doubts_of_lists(lists, content_of(recipe).metric, settings.get("roles"))
    for line in doubts:
        if UNSUITED in line and metric is None:
            raise DataError(f"{line} Choose: --metric match, gain, counts, wer, cer or bleu.", path=files[0])
        log.warning("%s", line)
    spelling = spelling_doubt(doubts)
    what = f"{'trees' if trees else 'texts'} in the format {format_name}, measured by {MEASURES[recipe.metric['name']]}"
    what += f". {spelling}" if spelling else ""
    if fused is not None:
        what += f"; {len(fused[0][0])} systems, whose files have the same {fused[1]}, are fused"
    top = [f"task: {task}{TASK_HINTS.get(task, '')}", *([f"# {spelling}"] if spelling else []), *measure]
    usual = ["", "# What suits the task; other values: rerank list, docs/recipes.md", *_task_lines(recipe)]
    return _checked_recipe([head[0], *account, head[1], *top, *data, *usual], what, about, command)


def _sides(
    nbest: Lists, gains: bool, references: Sequence[str], sources: Sequence[str], pattern: Callable[..., str]
) -> list[str]:
    """The lines of the gold trees, or of references and sources."""
    if nbest.of_trees:
        if not references:
            raise DataError("lists of trees need gold trees; name their files with --references", path=nbest.path)
        return [f"  gold: {_quote(pattern(references, key='references'))}"]
    list(map(TextFile, references))  # which refuses annotations
    if not (gains or references or nbest.references):
        roles, names = nbest.roles, [name for k, name in enumerate(nbest.names) if k != nbest.column]
        likely = [*(roles.gains if roles is not None else ()), *filter(REWARD.search, names)]
        message = "the lists say neither which candidates are good (a gain) nor what is right (a reference)"
        if likely:
            columns = f"{' and '.join(map(repr, likely))} could be the gain"
            message = f"{columns}; say {'which' if likely[1:] else 'so'}: --roles {likely[0]}=gain"
        elif roles is not None and (key := next(filter(LOWER.search, names), "")):
            message += f"; {key!r} could be a gain of which lower is better: --roles {key}=gain"
        else:
            message += "; add a gain to each candidate, or name --references"
        raise DataError(message, path=nbest.path)
    lacking = {"references": "not needed" if gains else "in the lists", "sources": "in the lists, or unknown"}
    if nbest.segmentation is not None and nbest.source is None:
        lacking["sources"] = "unknown; with them (--sources), pairs of phrases are features"
    paths_by_key = {"references": references, "sources": sources}
    return [
        f"  {key}: {_quote(pattern(paths, key=key)) if paths else f'null  # {lacking[key]}'}"
        for key, paths in paths_by_key.items()
    ]


def _task_lines(recipe: ListRecipe) -> list[str]:
    """The settings that the recipe's task brings, a line each."""
    settings, lines = recipe.model_dump(mode="json"), list[str]()
    for key, usual in TASKS[recipe.task].items():
        if key != "metric":
            text = ", ".join(f"{name}: {settings[key][name]}" for name in as_settings(usual))
            lines.append(f"{key}: {{{text}}}" + HINTS.get(key, "") * (f"{{{text}}}" not in HINTS.get(key, "")))
    return [*lines, *([LEARNED_FUSION] if recipe.task == "parse" else [])]


def _measure(task: str, use: str, lists: Sequence[Lists], metric: str | None) -> list[str]:
    """The line of the measure that is ``metric``, or where it is not that of the task."""
    if metric is not None:
        return [f"metric: {metric}"]
    texts = [text for nbest in lists[:SAMPLE_LISTS] for text in nbest.texts]
    solid = 10 * sum(UNSPACED_LETTERS.search(decoded(text)) is not None for text in texts) > len(texts)
    marks = 2 * sum(ATTACHED_MARK.search(text) is not None for text in texts) > len(texts)
    if use == "search":
        return ["metric: ndcg@10  # or map, mrr, recall@100; gain: of the first alone"]
    if task == "speech" and solid:
        return ["metric: cer  # as blanks do not tell words apart; or wer"]
    if task == "speech" and sum(len(text.split()) for text in texts) <= MAX_NAME_WORDS * len(texts):
        return ["metric: match  # of whole texts, as these are short, like names; or wer, cer"]
    if task == "translation" and (solid or marks):
        tokenizer = "char" if solid else "13a"
        return [f"metric: {{name: bleu, tokenize: {tokenizer}}}  # as blanks do not tell words apart; none: they do"]
    return []


def _lower(sample: Sequence[Lists]) -> list[str]:
    """The line of a gain that is called as ranks, costs and errors are, of which lower is better."""
    lists = [nbest for nbest in sample if GAIN in nbest.names and len(nbest)]
    key = lists[0].roles.gain_key if lists and isinstance(lists[0], Lists) and lists[0].roles is not None else ""
    if not LOWER.search(key):
        return []
    gains = [nbest.scores[:, nbest.names.index(GAIN)] for nbest in lists]
    lowest = all(gain[nbest.base.argmax()] == gain.min() for nbest, gain in zip(lists, gains, strict=True))
    why = "as the base chooses the lowest of every list" if lowest else "as of ranks, costs and errors"
    return [f"metric: {{name: gain, lower: true}}  # of {key!r} lower is better, {why}"]


def _systems(
    files: Sequence[str], sources: Sequence[str], reader: str | None, roles: str | None
) -> tuple[list[list[str]], str]:
    """The files of lists, those of several systems over the same inputs together, and what these have in common."""
    words = [
        re.search(r"(?<![a-z])(train|dev|valid|val|test)(?![a-z])", os.path.basename(path).lower()) for path in files
    ]
    if None not in words and len({word[0] for word in words if word}) == len(files):  # splits, whose ids begin again
        return [[path] for path in files], ""
    alone = len(set(files)) < 2 or len(set(files)) < len(files) or any(map(read_once, files))
    detect = format_of if roles else recognise  # which without roles may be no list
    name, *others = {None} if alone else {reader or detect(path, readers) for path in files}
    if name is None or others:
        return [[path] for path in files], ""
    spec = with_roles(settings_of(name, "--reader"), roles)
    parser, groups, common = make_reader(spec, "--reader"), list[tuple[Inputs, list[str]]](), ""
    for path, source in zip_longest(files, sources[: len(files)]):
        texts = parser.holds != "trees"
        inputs = inputs_of(parser, lists_of_texts(parser, path, sources=source) if texts else lists_of(parser, path))
        matches = ((group, same) for known, group in groups if (same := shared(known, inputs)))
        group, same = next(matches, ([], ""))
        groups += [] if same else [(inputs, group)]
        group.append(path)
        common = same or common
    return [group for _, group in groups], common


def _fuse(
    groups: list[list[str]], common: str, form: str, references: Sequence[str], pattern: Callable[..., str],
    command: list[str],
) -> tuple[str, str, list[str], list[str]]:  # fmt: skip
    """The lines of a recipe for the lists of several systems, each of the ``groups`` of which is a split, in place of
    those for the first system: the pattern of its files, its reader ``form``, the account, and the ``command``."""
    if len(set(map(len, groups))) > 1:
        message = f"files with the same {common} are those of systems to fuse, but not as many in each split: "
        raise DataError(message + "; ".join(map(", ".join, groups)), path=groups[0][0])
    firsts, *others = zip(*groups, strict=True)
    settings = as_settings(reader := read_yaml(f"reader: {form}")["reader"])
    joined = [",".join(group) for group in groups]
    if len(groups) == 1 and _needs_qrels(settings["name"]):
        (path,), names = firsts, groups[0][1:]
        place, settings, references, joined = pattern(firsts), {**settings, "others": names}, [], [path]
        command = [path, "--reader", f"{{name: {settings['name']}, others: [{', '.join(map(_quote, names))}]}}"]
    else:
        place = ",".join([pattern(firsts), *(pattern(column, key="another system") for column in others)])
        settings, command = {"name": "merged", "of": reader}, [joined[firsts.index(command[0])], *command[1:]]
    return as_json(place), as_json(settings), _account_of(joined[0], settings, references)[0], command


def _checked_recipe(lines: list[str], description: str, about: TaskFiles, command: list[str]) -> NewRecipe:
    """A recipe of these lines, which are checked."""
    text = "\n".join(lines) + "\n"
    recipe = read_settings(read_yaml(text))
    table = "by cross-validation"
    if about.tests and not tasks.get(recipe.task).folds:
        table = f"on {', '.join(map(os.path.basename, about.tests))}"
    paths = [path for path in about.paths if not is_url(path)]
    minutes = round(
        sum(os.path.getsize(path) * (RATIO if path.endswith(ENDINGS) else 1) for path in paths) / BYTES_PER_MINUTE
    )
    time = f"about {minutes} minutes" if minutes > 1 else "a minute or less"  # reading is most of a run
    return NewRecipe(text, recipe.task, description, tuple(command), f"{time}; base, model and more {table}")


def _needs_qrels(name: str) -> bool:
    """True if the lists of a reader are judged in a file beside."""
    return name in readers and "qrels" in vars(readers.get(name))["__dataclass_fields__"]


def _account_of(path: str, settings: Settings, references: Sequence[str]) -> tuple[list[str], list[Lists]]:
    """The account of a file in lines, and its first lists."""
    lists = read(path, settings, references=references[:1] or None, on_bad_list="skip")
    assert isinstance(lists, ListFile)
    first = lists.first_items()
    account = Account.of(path, first, settings["name"])
    return [] if account is None else [f"# {_listing([line])}" for line in account.lines], first


def _detect(files: Sequence[str], reader: str | None, roles: str | None) -> tuple[Settings, Lists]:
    """The reader of the files, and their first list with candidates."""
    names = {path: reader or format_of(path, readers) for path in files}
    if len(formats := set(names.values())) > 1:
        pairs = ", ".join(f"{path} {name}" for path, name in names.items())
        raise DataError(f"found the formats {', '.join(map(str, sorted(map(str, formats))))} ({pairs}); expected one")
    settings = settings_of(names[files[0]], "--reader") | ({} if roles is None else {"roles": parse_roles(roles)})
    problem = None
    for nbest in one_by_one(lists_of(make_reader(settings, "reader"), files[0])):
        if nbest.problem is None and len(nbest):
            return settings, nbest
        problem = problem or nbest.problem
    raise DataError("no list with candidates", path=files[0]) if problem is None else problem.with_advice()


def _common_folder(files: Sequence[str]) -> tuple[str, list[str]]:
    """The folder (or address) that files have in common, and where they are in it."""
    paths = [path if is_url(path) else os.path.normpath(path) for path in files]
    if len({is_url(path) or os.path.isabs(path) for path in paths}) > 1:
        paths = [path if is_url(path) else os.path.abspath(path) for path in paths]
    folder = os.path.commonprefix(paths).rpartition("/")[0] if len(paths) > 1 else os.path.dirname(paths[0])  # noqa: RUF071
    inner = [path[len(folder) :].removeprefix("/") for path in paths]
    return folder or ("/" if os.path.isabs(paths[0]) else "."), inner


def _splits(files: Sequence[str], names: dict[str, str]) -> tuple[str, str | None, list[str]]:
    """The files to train on, to choose on, and to test on, by the ``names`` of their splits."""

    def first_named(words: Sequence[str]) -> str | None:
        return next((path for path in files if any(word in names[path].lower() for word in words)), None)

    train = first_named(TRAIN) or files[0]
    dev = next((path for path in [first_named(DEV)] if path != train), None)
    return train, dev, [path for path in files if path not in (train, dev)]


def _names(files: Sequence[str]) -> dict[str, str]:
    """The names of the files' splits: the words that they do not share with the others, or the name of the only one
    without endings."""
    for path in files:
        if read_once(path):
            message = "what comes through a pipe is gone once it is looked at; write it to a file and name that"
            raise DataError(message, path=path)
        if files.count(path) > 1:
            raise DataError("the same file twice; expected different ones for training, dev and tests", path=path)
    inner = _common_folder(files)[1]
    if len(files) == 1:
        name = re.split(r"\.(?=[A-Za-z])", os.path.basename(inner[0]), maxsplit=1)[0]
        return {files[0]: name if is_name(name) else TRAIN[0]}
    before, after = (os.path.commonprefix(each) for each in (inner, [each[::-1] for each in inner]))  # noqa: RUF071
    before, after = (re.sub(r"[^\W_]+$", "", each) for each in (before, after))
    while before and any(len(each) <= len(before) + len(after) for each in inner):
        before = re.sub(r"[^\W_]*$", "", before[:-1])
    parts = [each[len(before) : len(each) - len(after)].rpartition("/")[2].strip(".-_") for each in inner]
    return {path: part or each for path, part, each in zip(files, parts, inner, strict=True)}


def _pattern(paths: Sequence[str], files: Sequence[str], splits: Mapping[str, str], key: str = "") -> str:
    """The pattern of the ``files`` of lists, as recipes have it, or of the files of ``key`` that go with them."""
    if len(paths) != len(files):
        counts = f"found {len(paths)} files of {key} for {len(files)} of lists"
        raise DataError(f"{counts}; expected one for each, in their order")
    (folder, inner), patterns = _common_folder(paths), set[str]()
    for path, of in zip(inner, files, strict=True):
        split = re.escape(literal(splits[of]))  # left open wherever it stands as a word
        patterns.add(re.sub(rf"(?<![^\W_]){split}(?![^\W_])", "{split}", literal(path)))
    if len(patterns) > 1:
        naming = f"called like those of the lists, in this order: {', '.join(splits.values())}"
        requirement = naming if key else "whose names differ in one place, as train, dev and test do"
        raise DataError(f"found {', '.join(paths)}; expected files {requirement}")
    return os.path.join(literal(folder) if key else "{root}", patterns.pop())


def _listing(files: Sequence[str]) -> str:
    """The names of files in a comment."""
    return ", ".join(path if path.isprintable() else as_json(path) for path in files)


def _quote(text: str) -> str:
    """A text as YAML has it, in quotes where it needs some."""
    plain = re.fullmatch(r"[\w./-]*[\w/]", text) and read_yaml(f"text: {text}")["text"] == text
    return text if plain and not text[0].isdigit() else as_json(text, ensure_ascii=not text.isprintable())
