"""Online learners over lists; importing this package registers them."""

from rerank.learn import (  # noqa: F401 - they register themselves
    adaptive,
    arow,
    cw,
    families,
    ftrl,
    large_margin,
    nherd,
    pa,
    perceptron,
    rda,
    scw,
    sgd,
    sop,
    truncated,
    winnow,
)
