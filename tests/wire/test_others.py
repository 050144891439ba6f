"""States, settings, statistics, receipts and results as messages."""

from dataclasses import fields

import pytest

from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.ids import made_at_ms
from queueber.model import (
    Column,
    FailOutcome,
    ItemInfo,
    ItemState,
    LogStats,
    QueueSettings,
    Receipt,
    Result,
    Results,
    SnapshotInfo,
    Stats,
)
from queueber.schema import wire
from queueber.wire.items import read_fail_outcomes, write_fail_outcomes
from queueber.wire.lists import read_columns
from queueber.wire.queues import read_settings, read_stats, write_settings, write_stats
from queueber.wire.results import (
    read_log_stats,
    read_receipt,
    read_results,
    results_of,
    write_log_stats,
    write_receipt,
    write_results,
)
from queueber.wire.snapshots import (
    items_of,
    read_peeked,
    read_scan,
    read_snapshot,
    read_state,
    wire_state,
    write_peeked,
    write_scan,
    write_snapshot,
)
from tests.support.messages import sent

IDS = [bytes([n]) * 16 for n in range(1, 4)]

SETTINGS = QueueSettings(1, 2, 3, 4, 5, (6, 7), 8, 9.5, 10, 0.25, 11, 12, 13)


def test_every_outcome_and_every_state_has_its_word() -> None:
    message = wire.FailResponse.new_message()
    write_fail_outcomes(message, list(FailOutcome))
    assert read_fail_outcomes(sent(message)) == list(FailOutcome)

    for state in ItemState:
        request = wire.PeekRequest.new_message(state=wire_state(state))
        assert read_state(sent(request).state) is state


def test_a_state_that_the_schema_does_not_know_is_refused() -> None:
    raw = bytearray(wire.PeekRequest.new_message(state="dead").to_bytes())
    raw[16] = 77  # the first byte of data, after the header and the pointer

    with (
        wire.PeekRequest.from_bytes(bytes(raw)) as request,
        pytest.raises(InvalidArgument, match="state: 77 is none of ready, delayed"),
    ):
        read_state(request.state)


def test_the_defaults_of_settings_on_the_wire_are_those_of_the_model() -> None:
    """A client of the original schema sends none of the later fields."""
    assert read_settings(sent(wire.QueueSettings.new_message())) == QueueSettings()


def test_settings_are_read_as_they_were_written() -> None:
    message = wire.QueueSettings.new_message()
    write_settings(message, SETTINGS)

    assert read_settings(sent(message)) == SETTINGS


def test_too_many_steps_of_a_backoff_are_refused_unread() -> None:
    message = wire.QueueSettings.new_message(backoffMs=[1] * 101)

    with pytest.raises(ResourceExhausted, match="backoffMs: the call has 101"):
        read_settings(sent(message))


def test_statistics_are_read_as_they_were_written() -> None:
    numbers = [field.name for field in fields(Stats) if field.name not in ("name", "settings")]
    values = {name: at + 1 for at, name in enumerate(numbers)}
    stats = Stats(name="queue", settings=SETTINGS, **values)
    message = wire.QueueStats.new_message()
    write_stats(message, stats)

    assert read_stats(sent(message)) == stats


def test_items_as_they_stand_are_read_as_they_were_written() -> None:
    plain = ItemInfo(IDS[0], b"x", 1, "", {}, "", 5, 0, 0, 2, attempt_times_ms=[])
    full = ItemInfo(
        *(IDS[1], b"", 3, "k", {"a": "b"}, "batch", 9, 2, 4, 5, IDS[2], "why", "what", [6, 7]),
        *(3, (IDS[0], IDS[2]), "other", 0, (1, 70), 30, 99),
    )
    message = wire.PeekResponse.new_message()
    write_peeked(message, [plain, full], b"next")

    assert read_peeked(sent(message)) == ([plain, full], b"next")


def test_item_that_an_older_server_peeked_has_nothing_of_its_own() -> None:
    """An older server sends none of the later fields."""
    (item,), _ = read_peeked(sent(wire.PeekResponse.new_message(items=[{"id": IDS[0]}])))

    assert (item.attempts_max, item.backoff_ms) == (None, ())
    assert (item.timeout_ms, item.expires_at_ms) == (0, 0)


def test_a_receipt_is_read_as_it_was_written() -> None:
    receipt = Receipt("batch", 4, 1, 2, 1, IDS[0], IDS[1], IDS[2], True)
    message = wire.Receipt.new_message()
    write_receipt(message, receipt)

    assert read_receipt(sent(message)) == receipt


@pytest.mark.parametrize(
    "results",
    [
        Results([], 17, 3),
        Results([Result(5, IDS[0], b"r", 9, 1, "", "")], 6, 0),
        Results(
            [Result(5, IDS[0], b"r", 9, 1, "k", ""), Result(6, IDS[1], b"", 8, 2, "", "b")], 7, 2
        ),
        Results([Result(5, IDS[0], b"", 9, 1, "", "", {"a": "1", "b": ""})], 6, 0),
    ],
)
def test_results_are_read_as_they_were_written(results: Results) -> None:
    message = wire.ReadResponse.new_message()
    write_results(message, results)

    assert results_of(read_results(sent(message))) == results


def test_results_of_a_batch_are_read_with_the_offsets_they_were_written_with() -> None:
    results = Results(
        [Result(5, IDS[0], b"r", 9, 1, "", "b"), Result(9, IDS[1], b"s", 9, 1, "", "b")], 12, 0
    )
    message = wire.ReadResponse.new_message()
    write_results(message, results, with_offsets=True)

    assert results_of(read_results(sent(message))) == results


ITEMS = [
    ItemInfo(
        IDS[0], b"c", made_at_ms(IDS[0]), "k", {"a": "1"}, "b", 7, 2, 0, 5, IDS[1], "why", "err"
    ),
    ItemInfo(IDS[1], b"", made_at_ms(IDS[1]), "", {}, "", 5, 0, 0, 6),
    ItemInfo(
        *(IDS[2], b"", made_at_ms(IDS[2]), "", {}, "", 5, 0, 0, 6),
        after=(IDS[0], IDS[1]),
        after_batch="night",
    ),
]


@pytest.mark.parametrize("items", [[], ITEMS, ITEMS[:2], ITEMS[1:2]])
def test_pages_of_a_snapshot_are_read_as_they_were_written(items: list[ItemInfo]) -> None:
    message = wire.ScanResponse.new_message()
    write_scan(message, items, b"next")

    columns = read_scan(sent(message))
    assert (items_of(columns), columns.next) == (items, b"next")


def test_snapshot_is_read_as_it_was_written() -> None:
    info = SnapshotInfo(IDS[0], 1, 2, 3, 4, 5, 6, 7, 8)
    message = wire.Snapshot.new_message()
    write_snapshot(message, info)

    assert read_snapshot(sent(message)) == info


def test_columns_that_are_left_out_are_read_as_they_were_written() -> None:
    for columns in (frozenset[Column](), frozenset({Column.KEYS}), frozenset(Column)):
        message = wire.Columns.new_message()
        for column in columns:
            setattr(message, column.value, True)

        assert read_columns(sent(message)) == columns


def test_the_numbers_of_a_log_are_read_as_they_were_written() -> None:
    stats = LogStats(1, 2, 3, {"reader": 1, "other": 2})
    message = wire.LogStats.new_message()
    write_log_stats(message, stats)

    assert read_log_stats(sent(message)) == stats
