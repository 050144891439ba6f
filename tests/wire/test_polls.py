"""Answers to polls as messages: in each form, what is written is read back."""

from dataclasses import replace

import pytest

from queueber.ids import ids_up_to, made_at_ms
from queueber.model import NO_DETAILS, ItemDetails, PackedItems, Polled
from queueber.schema import wire
from queueber.wire.polls import (
    PolledColumns,
    read_polled,
    read_polled_many,
    write_polled,
    write_polled_many,
)
from tests.support.messages import sent

IDS = [bytes([n]) * 16 for n in range(1, 6)]
DETAILS = ItemDetails([1, 2], ["", "k"], ["b", ""], [{"name": "välue"}, {}])
RUNS = [
    PackedItems(IDS[0], 2, b"\3\0\0\0\3\0\0\0", b"one"),
    PackedItems(IDS[1], 1, b"\5\0\0\0", b"three"),
    PackedItems(IDS[2], 3, b"\0\0\0\0\4\0\0\0\6\0\0\0", b"fivesi"),
]
IDS_OF_RUNS = [*ids_up_to(IDS[0], 2), IDS[1], *ids_up_to(IDS[2], 3)]
CONTENTS_OF_RUNS = [b"one", b"", b"three", b"", b"five", b"si"]


def as_lists(polled: PolledColumns) -> tuple[object, ...]:
    return polled.lease_id, list(polled.ids), list(polled.contents), polled.details


@pytest.mark.parametrize("details", [NO_DETAILS, DETAILS])
@pytest.mark.parametrize("packed", [False, True])
def test_what_was_polled_is_read_as_it_was_written(details: ItemDetails, packed: bool) -> None:
    polled = Polled.of(IDS[4], IDS[:2], [b"one", b""], details)
    message = wire.PollResponse.new_message()
    write_polled(message, polled, columns=True, packed=packed)

    answer = sent(message)

    assert as_lists(read_polled(answer)) == (IDS[4], IDS[:2], [b"one", b""], details)
    assert bool(answer.idRuns) == packed


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_runs_of_any_length_are_packed_one_after_the_other(runs: int) -> None:
    message = wire.PollResponse.new_message()
    write_polled(message, Polled(IDS[4], RUNS[:runs]), packed=True)
    items = sum(each.count for each in RUNS[:runs])

    read = read_polled(sent(message))

    assert as_lists(read) == (IDS[4], IDS_OF_RUNS[:items], CONTENTS_OF_RUNS[:items], NO_DETAILS)
    assert (len(read.ids), len(read.contents)) == (items, items)


def test_a_poll_that_got_nothing_is_empty_in_each_form() -> None:
    for form in ({}, {"columns": True}, {"packed": True}):
        message = wire.PollResponse.new_message()
        write_polled(message, Polled(), **form)

        assert as_lists(read_polled(sent(message))) == (b"", [], [], NO_DETAILS)


def test_an_item_in_the_original_form_carries_its_details_too() -> None:
    message = wire.PollResponse.new_message()
    write_polled(message, Polled.of(IDS[4], IDS[:2], [b"one", b"two"], DETAILS))

    first, second = sent(message).items

    assert (first.contents, first.id, first.addedAtMs) == (b"one", IDS[0], made_at_ms(IDS[0]))
    assert [(pair.name, pair.value) for pair in first.attributes] == [("name", "välue")]
    assert (first.attempt, first.key, first.batch) == (1, "", "b")
    assert (second.attempt, second.key, second.batch) == (2, "k", "")


def test_an_item_without_details_is_at_its_first_attempt() -> None:
    message = wire.PollResponse.new_message()
    write_polled(message, Polled.of(IDS[4], IDS[:1], [b"one"]))

    assert sent(message).items[0].attempt == 1


@pytest.mark.parametrize("packed", [False, True])
def test_several_polls_keep_their_own_details(packed: bool) -> None:
    answers = [
        Polled.of(IDS[4], IDS[:1], [b"one"]),
        Polled(),
        Polled(IDS[3], RUNS[:1], DETAILS),
        Polled(IDS[2], RUNS[1:]),
    ]
    message = wire.PollManyResponse.new_message()
    write_polled_many(message, answers, packed=packed)

    first, second, third, fourth = read_polled_many(sent(message))

    defaults = ItemDetails([1], [""], [""], [{}])
    assert as_lists(first) == (IDS[4], [IDS[0]], [b"one"], defaults)
    assert as_lists(second)[:3] == (b"", [], [])
    assert as_lists(third) == (IDS[3], IDS_OF_RUNS[:2], [b"one", b""], DETAILS)
    assert as_lists(replace(fourth, details=NO_DETAILS)) == (
        IDS[2], IDS_OF_RUNS[2:], CONTENTS_OF_RUNS[2:], NO_DETAILS,
    )  # fmt: skip


def test_several_polls_without_details_have_none() -> None:
    message = wire.PollManyResponse.new_message()
    write_polled_many(message, [Polled.of(IDS[4], IDS[:1], [b"one"])])

    assert read_polled_many(sent(message))[0].details is NO_DETAILS
