"""What is refused of topics, messages, groups and subscriptions, and in which words."""

from dataclasses import replace
from typing import Any

import pytest

from queueber.errors import InvalidArgument, QueueberError, ResourceExhausted
from queueber.limits import CREDITS_MAX, PUBLISH_MESSAGES_MAX, PUBLISH_TOPICS_MAX
from queueber.model import (
    GroupKind,
    GroupSettings,
    NewMessages,
    Position,
    Producer,
    Publication,
    QueueSettings,
    Start,
    Subscribing,
    TopicConfig,
    TopicSettings,
)
from queueber.service.validate.topics import (
    check_config,
    check_group_name,
    check_group_settings,
    check_message_id,
    check_new_topic_name,
    check_publications,
    check_subscribing,
    check_topic_name,
)

X = [b"x"]


@pytest.mark.parametrize("name", ["a", "a/b.c_d-e", "t" * 255, "queue", "queues/a"])
def test_names_of_topics(name: str) -> None:
    check_new_topic_name(name)


@pytest.mark.parametrize("name", ["", "t" * 256, "a b", "ä", "a\n", "a:b"])
def test_names_that_no_topic_has(name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^name: .* is not a topic name; use 1 to 255"):
        check_topic_name(name)


def test_names_of_results_are_reserved() -> None:
    check_topic_name("queue/a/results")
    with pytest.raises(InvalidArgument, match="name: 'queue/a' is reserved"):
        check_new_topic_name("queue/a")


def check(publication: Publication) -> None:
    check_publications([publication], payload_bytes_max=100, message_bytes_max=100_000)


PLAIN = Publication("t", NewMessages(X))


@pytest.mark.parametrize(
    "publication",
    [
        PLAIN,
        replace(PLAIN, messages=NewMessages([bytes(100)])),
        replace(PLAIN, messages=NewMessages(X, ["k" * 512], [{"n": "v"}], ["d" * 256])),
        replace(PLAIN, messages=NewMessages([]), closes=True),
        replace(PLAIN, partition=255, expected_offset=2**63 - 1),
        replace(PLAIN, producer=Producer("p" * 256, 2**64 - 1, 1)),
    ],
)
def test_publications_at_their_limits(publication: Publication) -> None:
    check(publication)


@pytest.mark.parametrize(
    ("publication", "kind", "told"),
    [
        (replace(PLAIN, messages=NewMessages([])), InvalidArgument, "payloads: there are none"),
        (
            replace(PLAIN, text_sequence="é" * 512 + "x"),
            InvalidArgument,
            "textSequence: .* has 1025 bytes; the limit is 1024",
        ),
        (replace(PLAIN, content_type="c" * 256), InvalidArgument, "contentType: .* has 256 bytes"),
        (replace(PLAIN, content_type="a\nb"), InvalidArgument, "contentType: .*printable ASCII"),
        (
            replace(PLAIN, messages=NewMessages([bytes(101)])),
            ResourceExhausted,
            "payloads: one has 101 bytes; the limit is 100",
        ),
        (replace(PLAIN, messages=NewMessages(X, ["k", "l"])), InvalidArgument, "keys: 2 for 1"),
        (replace(PLAIN, messages=NewMessages(X, ["k" * 513])), InvalidArgument, "key: .* 513"),
        (
            replace(PLAIN, messages=NewMessages(X, attributes=[{"": "v"}])),
            InvalidArgument,
            "attributes: one has an empty name",
        ),
        (
            replace(PLAIN, messages=NewMessages(X, attributes=[{"n": "v" * 8192}])),
            InvalidArgument,
            "attributes: those of an item have 8193 bytes",
        ),
        (
            replace(PLAIN, messages=NewMessages(X, dedup_ids=["d" * 257])),
            InvalidArgument,
            "dedupId: .* 257 bytes; the limit is 256",
        ),
        (replace(PLAIN, partition=256), InvalidArgument, "partition: 256 is too high"),
        (
            replace(PLAIN, producer=Producer("p", 0, 0)),
            InvalidArgument,
            "producer.sequence: 0; the first call of an epoch has 1",
        ),
        (
            replace(PLAIN, producer=Producer("p" * 257, 0, 1)),
            InvalidArgument,
            "producer.id: .* 257 bytes",
        ),
    ],
)
def test_publications_past_their_limits(
    publication: Publication, kind: type[QueueberError], told: str
) -> None:
    with pytest.raises(kind, match=told):
        check(publication)


def test_a_call_has_limits_on_all_its_publications_together() -> None:
    half = Publication("t", NewMessages([b""] * (PUBLISH_MESSAGES_MAX // 2)))
    room: dict[str, Any] = {"payload_bytes_max": 100, "message_bytes_max": 10**9}
    check_publications([half, half], **room)
    with pytest.raises(ResourceExhausted, match="payloads: the call has 10001; the limit is"):
        check_publications([half, half, PLAIN], **room)
    check_publications([PLAIN] * PUBLISH_TOPICS_MAX, **room)
    with pytest.raises(ResourceExhausted, match="publications: the call has 1001; the limit is"):
        check_publications([PLAIN] * (PUBLISH_TOPICS_MAX + 1), **room)
    with pytest.raises(InvalidArgument, match="publications: the call has none"):
        check_publications([], **room)
    with pytest.raises(ResourceExhausted, match=r"payloads: the call has .* bytes; the limit is 1"):
        check_publications([half], payload_bytes_max=100, message_bytes_max=1)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (TopicConfig(partitions=0), "partitions: 0 is out of range; it must be 1 to 256"),
        (TopicConfig(partitions=257), "partitions: 257 is out of range"),
        (TopicConfig(alias="a b"), "alias: 'a b' is not a topic name"),
        (TopicConfig(alias="queue/x"), "alias: 'queue/x' is reserved"),
        (TopicConfig(content_type="c" * 256), "contentType: .* has 256 bytes"),
        (TopicConfig(content_type="a\nb"), "contentType: .* printable ASCII"),
        (TopicConfig(TopicSettings(retention_ms=2**50)), "retentionMs: .* is out of range"),
        (TopicConfig(TopicSettings(ttl_ms=1, expires_at_ms=1)), "expiresAtMs: ttlMs is given, too"),
        (
            TopicConfig(TopicSettings(keeps_last_per_key=True, refuses_when_full=True)),
            "refusesWhenFull: keepsLastPerKey is given, too",
        ),
    ],
)
def test_configurations_that_are_refused(config: TopicConfig, told: str) -> None:
    with pytest.raises(InvalidArgument, match=told):
        check_config(config)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (GroupSettings(GroupKind.QUEUE), "queue: '' is not a queue name"),
        (
            GroupSettings(GroupKind.SHARED, queue="q"),
            "queue: 'q' is given, but the group is shared",
        ),
        (GroupSettings(in_flight_max=1), "inFlightMax: 1 is given, but the group is ordered"),
        (
            GroupSettings(GroupKind.SHARED, leases=QueueSettings(dead_age_ms=7)),
            "deadAgeMs: 7 is given, but a group keeps its dead",
        ),
    ],
)
def test_settings_of_groups_that_are_refused(settings: GroupSettings, told: str) -> None:
    with pytest.raises(InvalidArgument, match=told):
        check_group_settings(settings, 100)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (Subscribing(group="g" * 256), "group: .* has 256 bytes; the limit is 255"),
        (Subscribing(consumer="c" * 257), "consumer: .* has 257 bytes"),
        (Subscribing(consumer="a\nb"), "consumer: .* cannot be printed"),
        (Subscribing(credits=CREDITS_MAX + 1), "credits: 1000001 is out of range"),
        (Subscribing(heartbeat_ms=99), "heartbeatMs: 99 is out of range; it must be 100 to"),
        (Subscribing(lease_ms=2**40), "leaseMs: .* is out of range"),
        (Subscribing(position=Position(Start.GROUP)), "from: a group goes on where it is"),
    ],
)
def test_subscriptions_that_are_refused(asked: Subscribing, told: str) -> None:
    with pytest.raises(InvalidArgument, match=told):
        check_subscribing(asked, 100)


def test_ids_and_names_of_groups() -> None:
    check_message_id(bytes(16))
    with pytest.raises(InvalidArgument, match="id: it has 15 bytes; it must have 16"):
        check_message_id(bytes(15))
    check_group_name("g" * 255)
    with pytest.raises(InvalidArgument, match="group: it is empty; give 1 to 255 bytes"):
        check_group_name("")
    with pytest.raises(InvalidArgument, match=r"group: .* cannot be printed"):
        check_group_name("a\nb")
