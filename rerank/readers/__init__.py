"""Readers and writers of N-best lists and trees; importing this package registers the formats."""

from rerank.readers.moses import reader as moses  # noqa: F401 - they register themselves
from rerank.readers.texts import (
    columns,  # noqa: F401 - they register themselves
    fairseq,  # noqa: F401 - they register themselves
    jsonl,  # noqa: F401 - they register themselves
    merging,  # noqa: F401 - they register themselves
    sockeye,  # noqa: F401 - they register themselves
)
from rerank.readers.trees import (
    berkeley,  # noqa: F401 - they register themselves
    charniak,  # noqa: F401 - they register themselves
)
