"""Where a consumer begins: every form that clients of KalamDB send, and no other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.consuming import Start, read_start
from queueber.errors import InvalidArgument


@given(
    word=st.sampled_from(["latest", "earliest"]),
    case=st.sampled_from([str.upper, str.lower, str.title]),
)
def test_words_are_read_in_any_letter_case(word: str, case: type[str]) -> None:
    assert read_start(case(word)) == Start(word)  # type: ignore[arg-type]


@given(offset=st.integers(0, (1 << 63) - 1), name=st.sampled_from(["Offset", "offset", "OFFSET"]))
def test_offsets_are_read_as_objects_and_numbers(offset: int, name: str) -> None:
    assert read_start({name: offset}) == read_start(offset) == Start(offset)


def test_none_is_the_latest() -> None:
    assert read_start(None) == Start("latest")


@pytest.mark.parametrize(
    "wrong",
    ["", "first", "5", True, 1.5, -1, 1 << 63, {}, {"Offset": "5"}, {"Offset": True},
     {"Offset": 1, "x": 2}, {"Time": 1}, [1], {"Offset": -1}],
)  # fmt: skip
def test_other_starts_are_refused(wrong: object) -> None:
    with pytest.raises(InvalidArgument, match="start"):
        read_start(wrong)
