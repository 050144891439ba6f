import pytest

from queueber.cli.top.screen import to_age, to_rate, to_short


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0.0 s"),
        (450, "0.5 s"),
        (12_345, "12 s"),
        (119_999, "119 s"),
        (120_000, "2 min"),
        (7_199_999, "119 min"),
        (7_200_000, "2 h"),
        (172_800_000, "2 d"),
    ],
)
def test_ages_are_short(ms: int, text: str) -> None:
    assert to_age(ms) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(0.0, "0"), (0.04, "0.0"), (12.34, "12.3"), (1234.5, "1,234")]
)
def test_small_rates_have_a_decimal(rate: float, text: str) -> None:
    assert to_rate(rate) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (9_999, "9,999"),
        (10_000, "10k"),
        (9_999_999, "9,999k"),
        (10**7, "10M"),
        (10**12, "1,000G"),
    ],
)
def test_large_numbers_have_few_digits(number: int, text: str) -> None:
    assert to_short(number) == text
