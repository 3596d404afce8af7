"""A share of lists or examples: which ones are drawn."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rerank.data.corpus import share_of

SHARES = st.floats(0.001, 1)


@given(size=st.integers(1, 300), shares=st.tuples(SHARES, SHARES), seed=st.integers(0, 100))
def test_a_smaller_share_is_inside_a_larger_one(size: int, shares: tuple[float, float], seed: int) -> None:
    small, large = (share_of(size, share, seed) for share in sorted(shares))
    for drawn, share in zip((small, large), sorted(shares), strict=True):
        assert drawn.size == max(1, round(share * size))
        assert np.all(np.diff(drawn) > 0)
    assert np.isin(small, large).all()


def test_the_share_of_a_sorted_file_is_like_the_whole() -> None:
    drawn = [share_of(10_000, 0.1, seed) for seed in (1, 2)]
    assert all(abs(int(np.count_nonzero(each < 5_000)) - 500) < 80 for each in drawn)
    assert not np.array_equal(*drawn)
