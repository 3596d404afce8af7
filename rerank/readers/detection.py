"""What a file seems to be, and what its lists were taken for: candidates, base scores, gains or references, columns.

Where its reader makes nothing of a file, the other readers tell whose it is.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from rerank.base.encoding import amount, decoded, excerpt
from rerank.base.errors import DataError, RerankError
from rerank.base.registry import Registry
from rerank.readers.lists import GAIN, Lists, one_by_one
from rerank.storage.places import is_url
from rerank.storage.streams import START_SIZE, TO_JSONL, encoding, open_file, read_once, standard_input, start_alone

log = logging.getLogger("rerank")
ACCOUNT_LISTS = 1000  # lists that are looked at
QUOTE_LENGTH = 60  # characters of an example
MIN_SHARE = 0.5  # a reader reads a file if it can use a larger share of these lists

TABLES = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"  # how Parquet, and files and streams of Arrow, begin
TABLE = re.compile(r"\.(csv|parquet|arrow|feather)(\.\w+)?$", re.IGNORECASE)  # by the name of a file
files = Registry[re.Pattern[str]]("files")  # by readers: how the names end of files that are theirs, whatever they hold

# Numbers by names, by names: two whole objects of them, as runs and judgements in JSON begin, and of grades alone.
_TWO_OBJECTS = rb'\s*+\{(?>\s*+"[^"]*+"\s*+:\s*+\{(?>(?:\s*+"[^"]*+"\s*+:\s*+%s\s*+(?:,|(?=\})))+)\}\s*+[,}]){2}'
_COSTS = rb'"score": ', rb'"scores": \[', rb'"sentence_id": ', rb'"translation": ', rb'"translations": \['
# JSON that is not read as ``jsonl``, by the name under which its reader has it.
_OTHER_JSON = {
    "numbers": re.compile(_TWO_OBJECTS % rb"[-+.\deE]++"),
    "costs": re.compile(rb"\{" + b"".join(b"(?>.*?%s)" % key for key in _COSTS)),
}
_GRADES = rb"query-id\tcorpus-id\tscore|" + _TWO_OBJECTS % rb"\d{1,2}+"  # of documents, which could be lists too
_JUDGEMENTS = _GRADES + rb"|\S+[ \t]+(0|Q0)[ \t]+\S+[ \t]+-?\d+\s*\n"
_QRELS_USE = "judgements (qrels): name them behind the run that they judge, as rerank oracle RUN QRELS --metric ndcg@10"
_NAMES = rb"(?!([^\t\n]*+\t).*\n\1)([-\d. ]*+[^-\d.\s][^\t\n]*+\t){2}[-\d. ]*+[^-\d.\s]"  # of columns
_NUMBER = re.compile(rb"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")

# What programs write that no reader reads, by how it starts: what it is and what to do instead; or the program, and how
# three statements of Python go through the lines of ``text`` as ids with pairs of a text and a score.
_FOREIGN_FORMATS = (
    (rb"(VERSION|V|UTTERANCE|U)=|[^\s=]+ *\n\d+\s\d+\s[^\n]*\d,[-\d.]+",
     "word lattices: let the recogniser write n-best lists", ""),
    (rb"(\d+) ?\|\|\| (?!.*\|\|\|).*\n\1 ", "lists without scores: sed 's/$/ ||| ||| 0/' makes moses of them", ""),
    (rb"\d+ ?\|\|\| (\(ROOT \(\[\d|[^\t\n]*\t\d+ \|\|\| |(?!.*\|\|\|).*\S)",
     "one answer of Joshua for each input, without scores: let it write lists with -top-n 100 -output-format "
     "'%i ||| %s ||| %f ||| %c'", ""),
    (rb"S [^\n]*\nA -?\d+ -?\d+\|\|\|",
     "M2, whose corrections are edits and no sentences: put what ERRANT counts of each candidate into the lists "
     "(correct, found, right; the metric counts), or write the corrected sentences one a line", ""),
    (_JUDGEMENTS, _QRELS_USE, ""),
    (rb"[-+.\deE\s]*\([^()\n]*\(.*\)\s*\)[-+.\deE\s]*\n[-+.\deE\s]*\([^()\n]*\(",
     "trees of several sentences: put a blank line behind those of each, and no id before their scores", ""),
    (rb"NBestList[12]\.0", "SRILM",
     "[('0', [(re.sub('</?s>', '', l.partition(')')[2]), float(l[1:].partition(')')[0])) for l in text[1:]])]"),
    (rb"(-?\d+(\.\d+)? ){2}\d+ (<s> )?\S", "SRILM",
     "[('0', [(re.sub('</?s>', '', ' '.join(l.split()[3:])), float(l.split()[0])) for l in text])]"),
    (rb"#!MLF!#", "HTK", "[(b.split('\\n')[0], [(' '.join(l.split()[2] for l in n.splitlines() if l[:1].isdigit()), 0) "
     "for n in b.split('///')]) for b in '\\n'.join(text[1:]).split('\\n.\\n') if b]"),
    (rb"[^\t\n]+\t([^,\t\n]+,){4,}", "MeCab",
     "enumerate([(re.sub(r'\\t([^,]*).*\\s*', r'/\\1 ', p), 0) for p in g] for _, "
     "g in __import__('itertools').groupby('\\n'.join(text).removesuffix('\\nEOS').split('\\nEOS\\n'), "
     "lambda p: sorted(re.sub(r'\\t.*|\\s', '', p))))"),
    (rb"(?s)\s*<.{0,4000}?x_cost ", "an OCR program (hOCR)",
     "enumerate([(t, -float(c)) for c, t in re.findall(r'x_cost ([\\d.]+).*?>([^<]+)<', l)] for l in text)"),
    (rb"(?s)\s*<.{0,400}(ocr_page|ocrx_word|PcGts)", "an OCR program (hOCR, PAGE)",
     "enumerate([(t, float(c)) for c, t in re.findall(r'conf[= ]\"?([\\d.]+).*?>([^<]+)<', l)] for l in text)"),
    (rb"((?!\d+\t)[^\t\n]+)\t[^\t\n+<#\[]*+[+<#\[][^\t\n]*+\t\d+\.\d+\n\1\t", "hfst-lookup",
     "enumerate([(l.split('\\t')[1], -float(l.split('\\t')[2])) for l in b.splitlines()] for b in '\\n'.join(text)"
     ".split('\\n\\n'))"),
)  # fmt: skip
_PROGRAM_CODE = (
    "import json, re; text = open({!r}).read()"
    '.splitlines(); [print(json.dumps({{"id": str(id), "candidates": [{{"text": t, "score": float(s)}} for t, s in '
    "found]}})) for id, found in {} if found]"
)
_TABLE_CODE = (
    "import json; rows = [line.rstrip('\\n').split('\\t') for line in open({!r})]; open('lists.jsonl', 'w').writelines("
    "json.dumps(dict(zip(('group', 'text', 'score'), row))) + '\\n' for row in rows)"
)
Reader = Any  # that of ``base``, which asks for advice
Readers = Iterable[tuple[str, type[Reader]]]


def reader_by_name(path: str) -> str | None:
    """The reader of a file by its name alone."""
    return next((name for name, ending in files if ending.search(path)), None)


def holds_judgements(path: str) -> bool:
    """Whether a file begins as one of TREC's, BEIR's or JSON's judgements of documents does."""
    return bool(re.match(_JUDGEMENTS + rb"|\s*\{", _start(path) or b""))


def advice_on(reader: Reader, others: Readers, path: str) -> str:
    """Advice on a file, or a folder, of which ``reader`` cannot use the first list; empty if nobody can tell.

    others: the readers to try, by name.
    """
    start, leaves = _start(path), [one for one in reader.every if not one.within]  # the readers of single files
    if start is None and not os.path.isdir(path):
        paths = path.split(",")  # of several files, which a reader of single files takes for one
        if len(paths) < 2 or not all(map(os.path.isfile, paths)):
            return ""
        start = _start(paths[0])
        for name, other in _make_readers(others, needing=False):
            if other.file_options and _share(other, paths[0], start) > MIN_SHARE:
                return _looks_like(name, type(other), reader, other.file_options)
        message = "these are several files; --reader '{name: joined, of: ...}' reads lists and scores, "
        return f"{message}'{{name: merged, of: ...}}' the lists of several systems"
    if any(_share(leaf, path, start) > MIN_SHARE for leaf in leaves):
        return ""
    kinds = _fitting(path, start, others)
    if any(type(leaf) in kinds.values() for leaf in leaves):  # what its options ask for is not there
        return ""
    if (narrowest := _narrowest(kinds)) is not None:
        return _looks_like(narrowest, kinds[narrowest], reader)
    for form, what, lists in _FOREIGN_FORMATS:
        if re.match(form, start or b""):
            program = f"a file of {what}, {TO_JSONL}: {_PROGRAM_CODE.format(path, lists)}"
            return f"this looks like {program if lists else what}"
    needing = (name for name, other in _make_readers(others, needing=True) if _share(other, path, start) > MIN_SHARE)
    return next((_looks_like(name, dict(others)[name], reader) for name in needing), "")


def recognise(path: str, readers: Readers) -> str | None:
    """The name of the reader, of those without options that have to be given, that a file is for; None: nobody's."""
    return _narrowest(_fitting(path, _start(path), readers))


def format_of(path: str, readers: Readers, usual: str = "jsonl") -> str:
    """The name of the reader that a file is for; the ``usual`` one where it can be read only once, or is empty.

    Raises
    ------
    DataError: no reader reads it; the message says what it looks like, and what to do.
    """
    if read_once(path):
        return usual
    start = _start(path) or b""
    if re.match(_GRADES, start):
        message = f"no known form: this looks like {_QRELS_USE}; if it is a run, --reader trec reads it"
        raise DataError(message, path=path)
    if start.lstrip()[:1] in (b"{", b"["):
        found = [kind for kind, form in _OTHER_JSON.items() if form.match(start)]
        others = readers if found else ()  # which are not loaded for others
        return next((name for name, reader in others if reader.json in found), "jsonl")
    if (name := recognise(path, readers)) is not None or not start.strip():
        return name or usual
    with open_file(path) as stream:
        while stream.compression != "plain" and stream.read(START_SIZE):
            pass  # what is damaged, or cut short, is of no form
    advice = advice_on(dict(readers)["jsonl"](), readers, path)
    if not advice:
        first, *_ = start.split(b"\n", 1)
        if re.match(_NAMES, start):
            return "table"
        names = sorted(name for needing in (False, True) for name, _ in _make_readers(readers, needing=needing))
        advice = f"the first line is {excerpt(first)}, and the first lists are of none of these forms: "
        advice += f"{', '.join(names)}. If one is meant, --reader NAME says what is wrong. Python makes "
        advice += f"JSON lines of an id, a candidate and perhaps a score, with tabs between: {_TABLE_CODE.format(path)}"
    raise DataError(f"no known form: {advice}", path=path)


def _fitting(path: str, start: bytes | None, others: Readers) -> dict[str, type[Reader]]:
    """The readers that can use most of the first lists of a file, those for everything only if there are no others."""
    lines = ((start or b"") + b"\n\n").split(b"\n", 2)[:2]
    names, row = ([*map(_NUMBER.fullmatch, line.split(b"\t"))] for line in lines)
    has_header = len(names) == len(row) > 1 and any(row) and not any(names)  # the columns, as in no run of TREC
    if has_header or (start or b"").startswith(TABLES) or TABLE.search(path):
        return {name: kind for name, kind in others if name == "table"}
    shares = {name: (_share(other, path, start), type(other)) for name, other in _make_readers(others, needing=False)}
    best = max((share for share, _ in shares.values()), default=0.0)
    kinds = {name: kind for name, (share, kind) in shares.items() if share == best > MIN_SHARE}
    return {name: kind for name, kind in kinds.items() if not kind.general} or kinds


def _narrowest(kinds: Mapping[str, type[Reader]]) -> str | None:
    """The first of them: a format that takes all files of another, and more, is not the one that is meant."""
    return next((name for name, kind in kinds.items() if not issubclass(kind, tuple({*kinds.values()} - {kind}))), None)


def holds_texts(path: str) -> bool:
    """Whether a file that is to hold trees begins with something else."""
    return not (_start(path) or b"(").lstrip().startswith(b"(")


def _looks_like(name: str, kind: type[Reader], reader: Reader, keys: Iterable[str] = ()) -> str:
    """The advice to use another reader, of this ``kind``, with the options that it needs; or, where its lists hold what
    ``reader`` is not for, that they do."""
    if (content := next(one.holds for one in reader.every if not one.within)) and kind.holds and kind.holds != content:
        message = f"this looks like {name}, whose lists hold {kind.holds}"
        return f"{message}; expected {content}, as the model or the recipe's task says"
    options = "".join(f", {key}: ..." for key in keys or kind.trial)
    spec = f"{{name: {name}{options}}}"
    if reader.files != 1:
        return f"this looks like {name}: use the option of: {spec if options else name}"
    argument = f"'{spec}'" if options else name
    return f"this looks like {name}: use --reader {argument} (in a recipe: data.reader: {spec})"


def _make_readers(kinds: Readers, *, needing: bool) -> Iterator[tuple[str, Reader]]:
    """Readers of single files: those that need options or, on the contrary, those that do not."""
    for name, kind in kinds:
        try:
            reader = kind(**kind.trial)
        except (TypeError, RerankError):
            continue
        if reader.files == 1 and bool(kind.trial) == needing:
            yield name, reader


def _start(path: str) -> bytes | None:
    """The start of a file, decompressed; None if it cannot be read (twice)."""
    source = standard_input.get()
    if source is not None and path == source.path:
        return source.look()
    if not is_url(path) and not os.path.isfile(path):
        return None
    try:
        with open_file(path) as stream:
            return stream.look()
    except DataError:
        return None


def _share(reader: Reader, path: str, start: bytes | None) -> float:
    """The share of lists that ``reader`` can use whole, of those in the ``start`` of a file, or at first in a folder;
    0 if none."""
    usable, partial = list[bool](), start is not None and len(start) >= START_SIZE
    if start is not None and partial:  # whole lines: no candidate of a list that is longer shall be bad
        start = start[: start.rfind(b"\n") + 1] or start
    token = start_alone.set(start)
    encoding_token = encoding.set(encoding.get() if start is None else None)  # the start has been recoded
    try:
        for nbest in islice(reader.read(path), ACCOUNT_LISTS):
            if nbest.problem is not None or nbest.size:
                whole = nbest.problem is None and not nbest.bad and (not reader.trial or nbest.base.any())
                usable.append(bool(whole))
    except RerankError:
        if not partial:
            return 0.0
    finally:
        start_alone.reset(token)
        encoding.reset(encoding_token)
    if partial and len(usable) > 1:
        usable.pop()  # the last one, which the cut has damaged
    return sum(usable) / len(usable) if usable else 0.0


@dataclass(frozen=True)
class Account:
    """The roles of what the first lists of a file hold, ACCOUNT_LISTS at most."""

    format: str  # the format, and the form of JSON where it is one that is known
    lists: str  # how many were looked at
    candidates: str  # where they are, and one of them
    base: str = ""  # the base score
    right: str = ""  # the gain or the references, with an example; empty if nothing says what is right
    columns: str = ""  # the names of the scores besides
    unused: str = ""  # the keys that were taken for nothing, with their kind and count
    measure: str = ""  # what is measured, and why

    @staticmethod
    def of(name: str, items: Iterable[Lists], format: str = "", metric: Any = None) -> "Account | None":
        """The account of lists called ``name``, by default like their file, and what measures them; None if none of
        them has candidates."""
        measure, measured = ("", ()) if metric is None else (metric.words, metric.measured)
        every = list(islice(with_candidates(items), ACCOUNT_LISTS))
        if not every:
            return None
        first = next((nbest for nbest in every if len(nbest) > 1), every[0])
        form, key, unused = format or first.form or "lists", "", ""
        if (roles := first.roles) is not None:
            form += f" ({roles.form})" * bool(roles.form)
            key = ".".join(filter(None, (roles.many, *roles.text[: not roles.plain])))
            if roles.gain_key not in ("", GAIN):
                measure = measure.replace(f"mean {GAIN}", f"mean {GAIN}, of the key {roles.gain_key!r}", 1)
            unused = "; ".join(f"{key} ({what})" for key, what in roles.unused_keys.items())
        base = "none; all are 0, and the first candidate is the base's choice"
        if first.scores.shape[1] and not first.unscored:
            name_of_base = first.with_names().names[first.column]
            base = f"{name_of_base}, {first.base[0] + 0.0:.6g} of this one; higher is better"
        sizes = [len(nbest) for nbest in every]
        size = " to ".join(f"{end}" for end in sorted({min(sizes), max(sizes)}))
        count = f"{amount(len(every), 'list')}{' or more' * (len(every) == ACCOUNT_LISTS)} of {size}"
        return Account(
            f"{name or first.path or 'lists'}: {form}", f"{count} candidate{'s' * (size != '1')}",
            f"{key}{': ' * bool(key)}{quote(decoded(first.original(0)))}", base, _right(first, every, measured),
            _columns(first, every, measured), unused, measure,
        )  # fmt: skip

    def as_data(self) -> dict[str, str]:
        """The account as JSON has it, without what is empty."""
        return {key: value for key, value in vars(self).items() if value}

    @property
    def lines(self) -> list[str]:
        """It in words, six to eight lines."""
        right = self.right or "not in the lists"
        parts = {"candidates": self.candidates, "base score": self.base, "what is right": right}
        parts |= {"columns": self.columns or "none" * bool(self.base), "not used": self.unused, "measure": self.measure}
        return [f"{self.format}, {self.lists}", *(f"{what}: {text}" for what, text in parts.items() if text)]


def account_entry(account: Account | None) -> dict[str, Any]:
    """The account as a part of results."""
    return {} if account is None else {"account": account.as_data()}


def log_account(account: Account | None) -> None:
    """Say the account."""
    for line in [] if account is None else account.lines:
        log.info("%s", line)


def with_candidates(items: Iterable[Lists]) -> Iterator[Lists]:
    """The lists with candidates."""
    return (nbest for nbest in one_by_one(items) if len(nbest))


def quote(text: str) -> str:
    """The beginning of a text."""
    text = " ".join(text.split())
    return f'"{text[:QUOTE_LENGTH]}{"..." * (len(text) > QUOTE_LENGTH)}"'


def _right(first: Lists, lists: Sequence[Lists], measured: Sequence[str]) -> str:
    if first.of_trees:
        return f"gold trees, {quote(decoded(first.gold.text))}" if first.gold is not None else ""
    roles = first.roles
    several = roles is not None and len(roles.reference) > 1 and not roles.whole
    keys = f" ({', '.join(roles.reference)})" if roles is not None and several else ""
    parts = [f"references{keys}, {quote(decoded(first.references[0]))}"] if first.references else []
    if measured and GAIN not in measured:
        parts.append(f"the measure's columns, {', '.join(measured)}")
    elif GAIN in first.names:
        values = np.concatenate([one.scores[:, one.names.index(GAIN)] for one in lists if GAIN in one.names])
        much, key = f"from {values.min():g} to {values.max():g}", ""
        if np.isin(values, (0, 1)).all():
            much = f"{int(values.sum()):,} of {values.size:,} candidates are right"
        if roles is not None:
            key = roles.gain_key or (f"1 for the candidate that {roles.truth[0]} names" if roles.truth else "")
            key += ", counted from 1" * roles.ordinal
            key = key or (f"1 for the answer of {roles.right[0]}" if roles.right else "")
        parts.append(f"gain{f' ({key})' * bool(key)}, {much}")
    elif roles is not None and roles.gains:
        parts.append(f"{' or '.join(roles.gains)} could be; say which: --roles {roles.gains[0]}=gain")
    return "; ".join(parts)


def _columns(first: Lists, lists: Sequence[Lists], measured: Sequence[str]) -> str:
    names = [name for k, name in enumerate(first.names) if k != first.column and name not in (GAIN, *measured)]
    parts = [", ".join(names[:20]) + f" and {len(names) - 20} more" * (len(names) > 20)]
    sparse = next((one.sparse for one in (first, *lists) if one.sparse is not None and len(one.sparse.names)), None)
    if sparse is not None and (few := sorted({*map(decoded, sparse.names)})):
        parts.append(f"sparse features that some candidates have: {', '.join(few[:5])}{', ...' * (len(few) > 5)}")
    return "; ".join(filter(None, parts))
