"""Online learners over lists; importing this package registers them."""

from rerank.learn import arow, cw, nherd, pa, perceptron, rda, scw, sgd, sop  # noqa: F401 - they register themselves
