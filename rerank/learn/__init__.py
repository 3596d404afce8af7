"""Online learners over lists; importing this package registers them."""

from rerank.learn.rules import (  # noqa: F401 - what is imported here registers itself
    arda,
    arow,
    cw,
    fobos,
    ftrl,
    lm_nwin,
    lm_perc,
    lm_uwin,
    nherd,
    nwin,
    pa,
    perceptron,
    rda,
    scw,
    sgd,
    sop,
    tg,
    uwin,
    vrda,
)
