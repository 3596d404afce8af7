"""Parts that the rest of the program does without, and never names: each is known by its function ``register``."""

PARTS = tuple(
    f"{__name__}.{part}" for part in ("classification", "formats", "learners", "search", "serve", "structures")
)
