"""The checks: each says which field is wrong, what it was, and what the limit is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.errors import InvalidArgument, QueueberError, ResourceExhausted
from queueber.limits import LEASE_MS_MAX, MANY_MAX, QUEUE_NAME_CHARS_MAX
from queueber.service.validate.arguments import (
    check_client_name,
    check_counts,
    check_ids,
    check_lease_ms,
    check_many,
    check_queue_name,
    check_text,
    check_total,
    one_for_each,
)

# --- names ----------------------------------------------------------------------------------------


@given(
    name=st.text(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
        min_size=1,
        max_size=QUEUE_NAME_CHARS_MAX,
    )
)
def test_check_queue_name_takes_letters_digits_dots_dashes_and_underscores(name: str) -> None:
    check_queue_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a b",
        "a/b",
        "a\n",
        "\na",
        "ä",
        "٣",
        "a\0",
        "a:b",
        "x" * (QUEUE_NAME_CHARS_MAX + 1),
    ],
)
def test_check_queue_name_refuses_anything_else_with_the_limit(name: str) -> None:
    with pytest.raises(InvalidArgument) as raised:
        check_queue_name(name)

    assert str(raised.value).startswith(f"name: {name!r} is not a queue name")
    assert f"1 to {QUEUE_NAME_CHARS_MAX} letters" in str(raised.value)


def test_check_queue_name_does_not_repeat_a_book() -> None:
    with pytest.raises(InvalidArgument) as raised:
        check_queue_name("x" * 1_000_000)

    assert len(str(raised.value)) < 500


# --- polls and leases -----------------------------------------------------------------------------


def test_check_total_up_to_the_limit_is_taken_and_one_more_is_refused() -> None:
    check_total([60, 40], 100)

    with pytest.raises(InvalidArgument, match=r"^numItems: 101 is too many; the limit is 100$"):
        check_total([60, 41], 100)


def test_check_lease_ms_within_the_limits_is_taken() -> None:
    check_lease_ms(1)
    check_lease_ms(LEASE_MS_MAX)


def test_check_lease_ms_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"^leaseValidity: 0 is no lease; give at least one"):
        check_lease_ms(0)


def test_check_lease_ms_too_long_names_it_and_the_limit() -> None:
    with pytest.raises(
        InvalidArgument,
        match=rf"^leaseValidity: {LEASE_MS_MAX + 1} ms is too long; .* {LEASE_MS_MAX}$",
    ):
        check_lease_ms(LEASE_MS_MAX + 1)


# --- ids ------------------------------------------------------------------------------------------


def test_check_ids_of_16_bytes_are_taken() -> None:
    check_ids("ids", [])
    check_ids("ids", [bytes(16), b"x" * 16])


@pytest.mark.parametrize("field", ["ids", "leases"])
@pytest.mark.parametrize("size", [0, 15, 17, 1000])
def test_check_ids_of_another_width_name_the_field_and_both_widths(field: str, size: int) -> None:
    with pytest.raises(InvalidArgument, match=rf"^{field}: one has {size} bytes; it must have 16$"):
        check_ids(field, [bytes(16), bytes(size)])


# --- many at once ---------------------------------------------------------------------------------


def test_check_many_within_the_limits_is_taken() -> None:
    check_many("ids", 1)
    check_many("ids", MANY_MAX)


def test_check_counts_within_the_limits_is_taken() -> None:
    check_counts([1, MANY_MAX - 1], 2)


@pytest.mark.parametrize(
    ("counts", "leases", "code", "text"),
    [
        ([1], 2, InvalidArgument, "counts: 1 for 2 leases; give one for each"),
        ([1, 0], 2, InvalidArgument, "counts: one is 0; a lease holds at least one item"),
        ([1, MANY_MAX], 2, ResourceExhausted, f"counts: the call is for {MANY_MAX + 1} items"),
    ],
    ids=["not one for each", "none", "too many"],
)
def test_check_counts_says_what_is_wrong(
    counts: list[int], leases: int, code: type[QueueberError], text: str
) -> None:
    with pytest.raises(code, match=text):
        check_counts(counts, leases)


def test_check_many_of_none_names_the_field() -> None:
    with pytest.raises(InvalidArgument, match=r"^leases: the call has none; give at least one$"):
        check_many("leases", 0)


def test_check_many_of_too_many_names_the_field_the_number_and_the_limit() -> None:
    with pytest.raises(
        ResourceExhausted, match=rf"^ids: the call has {MANY_MAX + 1}; the limit is {MANY_MAX},"
    ):
        check_many("ids", MANY_MAX + 1)


@given(values=st.lists(st.integers(), min_size=1, max_size=20))
def test_one_for_each_gives_the_values_themselves_when_there_are_as_many(
    values: list[int],
) -> None:
    assert list(one_for_each("x", values, len(values))) == values


@given(value=st.integers(), count=st.integers(1, 50))
def test_one_for_each_repeats_a_single_one(value: int, count: int) -> None:
    assert list(one_for_each("x", [value], count)) == [value] * count


@pytest.mark.parametrize(("values", "count"), [([], 1), ([1, 2], 1), ([1, 2], 3), ([], 5)])
def test_one_for_each_of_another_number_names_the_field_and_both(
    values: list[int], count: int
) -> None:
    with pytest.raises(
        InvalidArgument,
        match=rf"^leases: {len(values)} for {count}; give one, or one for each$",
    ):
        one_for_each("leases", values, count)


# --- text -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["x", "x" * 10, "\0" * 10, "ä" * 5, "\U0001f600" * 2])
def test_check_text_up_to_the_limit_is_taken_and_its_bytes_count(text: str) -> None:
    check_text("key", text, 10)


@pytest.mark.parametrize(("text", "size"), [("x" * 11, 11), ("ä" * 6, 12), ("\U0001f600" * 3, 12)])
def test_check_text_past_the_limit_names_it_its_bytes_and_the_limit(text: str, size: int) -> None:
    with pytest.raises(InvalidArgument) as raised:
        check_text("key", text, 10)

    assert str(raised.value) == f"key: {text!r}... has {size} bytes; the limit is 10"


def test_check_text_of_nothing_names_the_field_and_the_limit() -> None:
    with pytest.raises(InvalidArgument, match=r"^batch: it is empty; give 1 to 10 bytes of text$"):
        check_text("batch", "", 10)


def test_check_text_does_not_repeat_a_book() -> None:
    with pytest.raises(InvalidArgument) as raised:
        check_text("key", "x" * 1_000_000, 512)

    assert len(str(raised.value)) < 200


# --- names of callers -----------------------------------------------------------------------------


def test_check_client_name_takes_what_can_be_printed_in_one_line() -> None:
    check_client_name("name", "nightly job, büro 7")

    with pytest.raises(InvalidArgument, match=r"^name: it is empty"):
        check_client_name("name", "")
    with pytest.raises(InvalidArgument, match=r"^name: .* has 257 bytes; the limit is 256$"):
        check_client_name("name", "n" * 257)
    with pytest.raises(InvalidArgument, match=r"^name: 'a\\nb' has characters that cannot be"):
        check_client_name("name", "a\nb")
