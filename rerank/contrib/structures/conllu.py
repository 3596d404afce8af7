"""CoNLL-U, ten columns with tabs between them (https://universaldependencies.org/format.html):

    # sent_id = weblog-1
    1    Words    word    NOUN    NNS    Number=Plur    2    nsubj    _    _
    2    matter   matter  VERB    VBP    _              0    root     _    _

Lines of multiword tokens (1-2) and of empty nodes (1.1) are no tokens, but are written back.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from rerank.base.encoding import encoded
from rerank.base.errors import RecipeError
from rerank.contrib.structures.readers import LineBlock, SequenceReader, TaggedSentence
from rerank.readers.problems import Problem
from rerank.readers.streams import Writable

FIELDS = "id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"
NONE = "_"  # an unspecified field
_TOKEN, _OTHER = re.compile("[0-9]+"), re.compile(r"[0-9]+[-.][0-9]+")
_FEATURE = re.compile(r"[A-Z][A-Za-z0-9]*(\[[a-z0-9]+\])?")


@dataclass(frozen=True)
class ConlluReader(SequenceReader):
    """Words of dependency treebanks; the id of a sentence is its ``sent_id``, if it has one.

    Parameters
    ----------
    label: a field by name, as ``upos`` and ``xpos``, or a feature, as ``Case``, which is ``_`` for words without it.
    columns: the fields or features that tokens have, the word first.
    """

    label: str = "upos"
    columns: tuple[str, ...] = field(default=("form",))

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        super().__post_init__()
        for key, name in (("label", self.label), *(("columns", name) for name in self.columns)):
            if not (isinstance(name, str) and (name in FIELDS or _FEATURE.fullmatch(name))):
                raise RecipeError(f"found {name!r}; expected one of {', '.join(FIELDS)} or a feature, as Case", key=key)
        if not self.columns:
            raise RecipeError("expected the fields that tokens have, as [form]", key="columns")

    def sentence(self, block: LineBlock, name: str, path: str, width: int | None) -> TaggedSentence | None:
        tokens, labels, places = list[tuple[str, ...]](), list[str](), list[int]()
        for place, line in enumerate(block.rows):
            if line.startswith("#"):
                key, equals, value = line[1:].partition("=")
                name = value.strip() if equals and key.strip() == "sent_id" and value.strip() else name
                continue
            fields = line.split("\t")
            if len(fields) != len(FIELDS):
                message = f"found {len(fields)} columns with tabs between them; expected {len(FIELDS)}"
                raise Problem("columns", message, block.line + place)
            if _OTHER.fullmatch(fields[0]):
                continue
            if not _TOKEN.fullmatch(fields[0]):
                message = f"found the id {fields[0][:40]!r}; expected a number, as 3, 3-4 or 3.1"
                raise Problem("id", message, block.line + place)
            tokens.append(tuple(_value(fields, column) for column in self.columns))
            labels.append(_value(fields, self.label))
            places.append(place)
        if not tokens:
            return None
        known = self.label not in FIELDS or NONE not in labels
        if not known and width is None:
            message = f"found a word without {self.label}; expected one for every word"
            raise Problem("label", message, block.line + places[labels.index(NONE)])
        raw = tuple(block.rows)
        return TaggedSentence(tuple(tokens), tuple(labels) if known else (), name, path, block.line, raw, tuple(places))

    def write(self, out: Writable, sentence: TaggedSentence, labels: Sequence[str]) -> None:
        rows = list(sentence.raw)
        for place, label in zip(sentence.places, labels, strict=True):
            fields = rows[place].split("\t")
            if self.label in FIELDS:
                fields[FIELDS.index(self.label)] = label
            else:
                features = dict(part.partition("=")[::2] for part in fields[5].split("|") if part != NONE)
                features |= {self.label: label}
                kept = [f"{key}={features[key]}" for key in sorted(features, key=str.lower) if features[key] != NONE]
                fields[5] = "|".join(kept) or NONE
            rows[place] = "\t".join(fields)
        out.write(encoded("\n".join([*rows, "", ""])))


def _value(fields: Sequence[str], name: str) -> str:
    """A field, or a feature of the sixth, of a word."""
    if name in FIELDS:
        return fields[FIELDS.index(name)]
    return dict(part.partition("=")[::2] for part in fields[5].split("|")).get(name, NONE)
