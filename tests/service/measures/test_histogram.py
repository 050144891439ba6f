"""Histograms: each value in the bucket of its bound."""

from queueber.service.measures.histogram import Histogram


def test_value_counts_in_the_first_bucket_that_is_not_below_it() -> None:
    observed = Histogram((1, 10))

    for value in (0.5, 1, 1.5, 10, 11):
        observed.observe(value)

    assert observed.values == (24, 2, 2, 1)
    assert observed.count == 5
