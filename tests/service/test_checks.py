"""The checks: each says which field is wrong, what it was, and what the limit is."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.limits import (
    ADD_ITEMS_MAX,
    DELAY_MS_MAX,
    ITEM_WIRE_BYTES,
    LEASE_MS_MAX,
    MANY_MAX,
    MESSAGE_OVERHEAD_BYTES,
    MIB,
    QUEUE_NAME_CHARS_MAX,
)
from queueber.model import QueueSettings
from queueber.service.checks import (
    check_add,
    check_count,
    check_ids,
    check_lease_ms,
    check_many,
    check_queue_name,
    check_settings,
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


# --- settings -------------------------------------------------------------------------------------


def test_check_settings_up_to_the_limit_of_the_server_is_taken() -> None:
    check_settings(QueueSettings(items_max=10**18, bytes_max=10**18, item_bytes_max=100), 100)
    check_settings(QueueSettings(), 100)


def test_check_settings_over_the_limit_of_the_server_names_both() -> None:
    with pytest.raises(InvalidArgument, match=r"^itemBytesMax: 101 is over .* limit of 100$"):
        check_settings(QueueSettings(item_bytes_max=101), 100)


# --- add ------------------------------------------------------------------------------------------


def checked_add(
    contents: Sequence[bytes], delays_ms: Sequence[int] = (), message_bytes_max: int = MIB
) -> None:
    check_add(contents, delays_ms, item_bytes_max=10, message_bytes_max=message_bytes_max)


def test_check_add_of_what_is_within_every_limit_is_taken() -> None:
    checked_add([b""])
    checked_add([b"x" * 10] * ADD_ITEMS_MAX)
    checked_add([b"a", b"b"], [0, DELAY_MS_MAX])


def test_check_add_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"^items: the call has none; add at least one$"):
        checked_add([])


def test_check_add_of_too_many_names_the_number_and_the_limit() -> None:
    with pytest.raises(
        ResourceExhausted, match=rf"^items: the call has {ADD_ITEMS_MAX + 1}; .*is {ADD_ITEMS_MAX},"
    ):
        checked_add([b""] * (ADD_ITEMS_MAX + 1))


def test_check_add_of_one_item_too_large_names_its_size_and_the_limit() -> None:
    with pytest.raises(
        ResourceExhausted, match=r"^contents: an item has 11 bytes; the limit is 10$"
    ):
        checked_add([b"", b"x" * 11, b"y" * 10])


def test_check_add_of_more_than_a_message_names_its_size_and_the_limit() -> None:
    size = 3 * 10 + 3 * ITEM_WIRE_BYTES + MESSAGE_OVERHEAD_BYTES
    checked_add([b"x" * 10] * 3, message_bytes_max=size)

    with pytest.raises(
        ResourceExhausted, match=rf"^contents: the call has {size} bytes; the limit is {size - 1},"
    ):
        checked_add([b"x" * 10] * 3, message_bytes_max=size - 1)


@pytest.mark.parametrize("delays_ms", [[1], [1, 2, 3]])
def test_check_add_with_another_number_of_delays_names_both(delays_ms: list[int]) -> None:
    with pytest.raises(
        InvalidArgument, match=rf"^delaysMs: {len(delays_ms)} delays for 2 items; give one for each"
    ):
        checked_add([b"a", b"b"], delays_ms)


def test_check_add_with_a_delay_too_long_names_it_and_the_limit() -> None:
    with pytest.raises(
        InvalidArgument,
        match=rf"^visibilityTimeout: {DELAY_MS_MAX + 1} ms is too long; .* {DELAY_MS_MAX}$",
    ):
        checked_add([b"a", b"b"], [0, DELAY_MS_MAX + 1])


# --- polls and leases -----------------------------------------------------------------------------


def test_check_count_up_to_the_limit_is_taken_and_one_more_is_refused() -> None:
    check_count(100, 100)

    with pytest.raises(InvalidArgument, match=r"^numItems: 101 is too many; the limit is 100$"):
        check_count(101, 100)


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
