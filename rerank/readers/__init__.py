"""Readers and writers of N-best lists and trees; importing this package registers the formats."""

from rerank.readers.combined import joining, merging  # noqa: F401 - they register themselves
from rerank.readers.moses import reader as moses  # noqa: F401 - they register themselves
from rerank.readers.texts import (
    espnet,  # noqa: F401 - they register themselves
    fairseq,  # noqa: F401 - they register themselves
    jsonl,  # noqa: F401 - they register themselves
    kaldi,  # noqa: F401 - they register themselves
    openai,  # noqa: F401 - they register themselves
    opennmt,  # noqa: F401 - they register themselves
    parallel,  # noqa: F401 - they register themselves
    preferences,  # noqa: F401 - they register themselves
    sockeye,  # noqa: F401 - they register themselves
)
from rerank.readers.trees import (
    bare,  # noqa: F401 - they register themselves
    berkeley,  # noqa: F401 - they register themselves
    charniak,  # noqa: F401 - they register themselves
    stanford,  # noqa: F401 - they register themselves
)
