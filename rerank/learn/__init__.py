"""Online learners over lists; importing this package registers them."""

from rerank.learn.mixing import states  # noqa: F401 - what is imported here registers itself
from rerank.learn.rules import (  # noqa: F401
    adaptive,
    arow,
    cw,
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
