"""Online learners over lists; importing this package registers them."""

from rerank.learn import perceptron, rda  # noqa: F401 - they register themselves
