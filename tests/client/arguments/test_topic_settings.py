"""Settings of topics and groups as users write them."""

from datetime import timedelta
from typing import Any

import pytest

from queueber import (
    GroupKind,
    GroupSettings,
    InvalidArgument,
    QueueSettings,
    TopicConfig,
    TopicSettings,
)
from queueber.client.arguments.topic_settings import to_group_settings, to_topic_config


def test_settings_of_a_topic_are_changed_one_by_one() -> None:
    present = TopicConfig(TopicSettings(retention_bytes=7), partitions=2)

    config = to_topic_config(
        present, {"retention": timedelta(hours=1), "ttl": 2, "partitions": 4, "alias": "o"}
    )

    changed = TopicSettings(retention_bytes=7, retention_ms=3_600_000, ttl_ms=2000)
    assert config == TopicConfig(changed, partitions=4, alias="o")


def test_a_shared_group_has_settings_of_leases() -> None:
    settings = to_group_settings({"kind": "shared", "lease": 30, "in_flight_max": 5})

    leases = QueueSettings(lease_ms=30_000)
    assert settings == GroupSettings(GroupKind.SHARED, leases=leases, in_flight_max=5)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"partitions": 0}, "partitions: 0 is not a number, 1 or more"),
        ({"partitions": 257}, "partitions: 257 is too many; the limit is 256"),
        ({"retention": -1}, "retention: -1 is not a number of seconds"),
        ({"retention": 1e10}, "retention: 10000000000 s is too long; the limit is"),
        ({"keeps_last_per_key": 1}, "keeps_last_per_key: 1 is neither True nor False"),
        ({"content_type": "t" * 256}, "content_type: it has 256 bytes; the limit is 255"),
        ({"ttl": 1, "expires_at": 1e9}, "expires_at: the topic has a ttl, too"),
        (
            {"keeps_last_per_key": True, "refuses_when_full": True},
            "refuses_when_full: the topic keeps the last message of each key",
        ),
        ({"retentoin": 1}, "retentoin: there is no such setting of a topic"),
    ],
)
def test_wrong_settings_of_a_topic_are_refused_with_a_reason(given: Any, told: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        to_topic_config(TopicConfig(), given)

    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"kind": "fifo"}, "kind: 'fifo' is none of ordered, shared, queue"),
        ({"kind": "queue"}, "queue: a group of kind 'queue' needs the queue"),
        ({"queue": "q"}, "queue: a group of kind 'ordered' adds to no queue"),
        ({"lease": 30}, "lease: only groups of kind 'shared' have leases"),
        ({"in_flight_max": 3}, "in_flight_max: only groups of kind 'shared' have leases"),
        ({"kind": "shared", "lease": 0}, "lease: 0 is too short"),
    ],
)
def test_wrong_settings_of_a_group_are_refused_with_a_reason(given: Any, told: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        to_group_settings(given)

    assert told in str(refused.value)
