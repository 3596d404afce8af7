"""All commands: importing this registers them."""

from rerank.cli import (  # noqa: F401
    decoding,
    evaluating,
    exporting,
    folds,
    inspecting,
    listing,
    lists,
    oracles,
    running,
    serving,
    tuning,
)
