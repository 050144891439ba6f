"""Options of topics: what they mean, and that a wrong one is named before any task runs."""

import pytest

from queueber.errors import InvalidArgument
from queueber.model import Position, Start
from queueber.spark.places import EARLIEST, LATEST, Places
from queueber.spark.source import QueueberDataSource
from queueber.spark.topic_options import (
    TopicReadOptions,
    TopicWriteOptions,
    topic_read_options,
    topic_write_options,
)

GOOD = {"topic": "orders"}
NEW_YEAR_MS = 1_767_225_600_000


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"topic": ""}, "option 'topic': '' is not the name of a topic"),
        ({"topic": "a b"}, "option 'topic': 'a b' is not the name of a topic"),
        ({**GOOD, "address": "nowhere"}, "option 'address': 'nowhere' is not host:port"),
        ({**GOOD, "table": "items"}, "option 'table' is not one of this source; it has address, t"),
        ({**GOOD, "startingOffsets": "middle"}, "option 'startingOffsets': 'middle' is no place"),
        ({**GOOD, "startingOffsets": "5"}, "option 'startingOffsets': '5' is no place in a topic"),
        ({**GOOD, "startingOffsets": "latest"}, "option 'startingOffsets': a batch that starts at"),
        ({**GOOD, "startingOffsets": '{"0": -1}'}, "option 'startingOffsets': a batch that starts"),
        ({**GOOD, "startingOffsets": '{"0": -3}'}, "option 'startingOffsets': -3 is no place"),
        (
            {**GOOD, "startingOffsets": '{"0": 1'},
            "option 'startingOffsets': '{\"0\": 1' is not JSON",
        ),
        (
            {**GOOD, "startingOffsets": '{"orders": {"0": 1}}'},
            "option 'startingOffsets': 'orders' is not the number of a partition",
        ),
        (
            {**GOOD, "startingOffsets": "2026-01-01T00:00:00"},
            "option 'startingOffsets': 2026-01-01T00:00:00 has no time zone",
        ),
        ({**GOOD, "endingOffsets": "earliest"}, "option 'endingOffsets': a batch that ends at"),
        ({**GOOD, "endingTimestamp": "today"}, "option 'endingTimestamp': 'today' is not a time"),
        (
            {**GOOD, "startingOffsets": "earliest", "startingTimestamp": "5"},
            "option 'startingTimestamp': there is 'startingOffsets' too",
        ),
        ({**GOOD, "failOnDataLoss": "no"}, "option 'failOnDataLoss': 'no' is none of true, false"),
        ({**GOOD, "splits": "0"}, "option 'splits': '0' is not a number from 1 to 10000"),
        (
            {**GOOD, "maxOffsetsPerTrigger": "5"},
            "option 'maxOffsetsPerTrigger' is for streaming reads only",
        ),
        ({**GOOD, "group": "g"}, "option 'group' is for streaming reads only"),
        ({**GOOD, "write_id": "w"}, "option 'write_id' is for writing only"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        topic_read_options(options)

    assert str(refused.value).startswith(told)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"endingOffsets": "latest"}, "option 'endingOffsets' is for batch reads only"),
        ({"push_filters": "true"}, "option 'push_filters' is for batch reads only"),
        ({"maxOffsetsPerTrigger": "0"}, "option 'maxOffsetsPerTrigger': '0' is not a number"),
        ({"group": ""}, "option 'group': it is empty"),
    ],
)
def test_wrong_options_of_a_stream_are_named(options: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{told}"):
        topic_read_options({**GOOD, **options}, is_streaming=True)


def test_wrong_options_of_a_write_are_named() -> None:
    with pytest.raises(InvalidArgument, match=r"^option 'startingOffsets' is for reading only"):
        topic_write_options({**GOOD, "startingoffsets": "earliest"})
    with pytest.raises(InvalidArgument, match=r"^option 'write_id' is for batch writes only"):
        topic_write_options({**GOOD, "write_id": "w"}, is_streaming=True)
    assert topic_write_options({**GOOD, "write_id": "w"}) == TopicWriteOptions(
        "127.0.0.1:9090", "orders", write_id="w"
    )


def test_queue_and_topic_are_not_given_together() -> None:
    with pytest.raises(InvalidArgument, match=r"^option 'topic': there is 'queue' too"):
        QueueberDataSource({"Topic": "t", "queue": "q"})


def test_options_are_read_whatever_their_case_and_beside_those_of_spark() -> None:
    given = {"TOPIC": "orders", "STARTINGOFFSETS": "Earliest", "checkpointLocation": "/c"}

    assert topic_read_options(given) == TopicReadOptions("127.0.0.1:9090", "orders")


@pytest.mark.parametrize(
    ("options", "start", "end"),
    [
        ({}, Places(EARLIEST), Places(LATEST)),
        (
            {"startingOffsets": '{"0": 5, "2": -2}', "endingOffsets": '{"1": -1}'},
            Places(EARLIEST, {0: Position(Start.OFFSET, 5), 2: EARLIEST}),
            Places(LATEST, {1: LATEST}),
        ),
        (
            {"startingOffsets": "2026-01-01T00:00:00Z", "endingTimestamp": str(NEW_YEAR_MS + 1)},
            Places(Position(Start.TIME, NEW_YEAR_MS)),
            Places(Position(Start.TIME, NEW_YEAR_MS + 1)),
        ),
        (
            {"startingOffsets": '{"0": "2026-01-01T01:00:00+01:00"}'},
            Places(EARLIEST, {0: Position(Start.TIME, NEW_YEAR_MS)}),
            Places(LATEST),
        ),
    ],
)
def test_places_are_words_offsets_and_times(
    options: dict[str, str], start: Places, end: Places
) -> None:
    read = topic_read_options({**GOOD, **options})

    assert (read.start, read.end) == (start, end)
