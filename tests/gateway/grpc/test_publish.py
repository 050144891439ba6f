"""Publish, BatchPublish and ListTopics, as clients of Sluice call them."""

import base64
import uuid
from typing import Any

import grpc
import pytest

import queueber
from queueber.gateway.grpc import sluice_pb2 as wire
from queueber.limits import PAYLOAD_BYTES_MAX
from tests.support.grpc import SECONDS, Sluice

INVALID = grpc.StatusCode.INVALID_ARGUMENT


def refused(sluice: Sluice, request: object, name: str = "Publish") -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as found:
        sluice._call(name, request, wire.PublishResponse)
    return found.value.code(), found.value.details() or ""


def test_a_message_is_stored_with_its_attributes_and_read_by_another_door(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    done = sluice.publish(topic, b"\0hello", traceparent="00-abc-01", empty="")

    (found,) = client.topic(topic).read()
    assert (found.payload, dict(found.attributes)) == (
        b"\0hello",
        {"traceparent": "00-abc-01", "empty": ""},
    )
    assert uuid.UUID(done.message_id) == uuid.UUID(bytes=found.id)
    assert uuid.UUID(done.message_id).version == 7
    assert (done.sequence, done.timestamp) == (found.sequence, found.timestamp_ms)


def test_one_sequence_rises_over_all_topics_and_an_empty_payload_is_allowed(
    sluice: Sluice, topic: str
) -> None:
    first, second = sluice.publish(topic), sluice.publish(topic + "-2", b"")

    assert second.sequence == first.sequence + 1 > 1


def test_a_batch_has_one_time_and_consecutive_sequences(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    done = sluice.batch(topic, b"0", b"", b"2")

    found = client.topic(topic).read()
    assert found.payloads == [b"0", b"", b"2"]
    assert [each.sequence for each in done.results] == [each.sequence for each in found]
    assert [each.message_id for each in done.results] == [
        str(uuid.UUID(bytes=each.id)) for each in found
    ]
    assert {each.timestamp_ms for each in found} == {done.timestamp}


def test_a_batch_has_1_to_1000_messages_and_is_stored_whole_or_not_at_all(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    message = wire.BatchMessage(payload=b"m")
    for count in (0, 1001):
        request = wire.BatchPublishRequest(topic=topic, messages=[message] * count)
        status, text = refused(sluice, request, "BatchPublish")
        assert (status, text) == (INVALID, f"messages: there are {count}; a batch has 1 to 1000")
    large = wire.BatchMessage(payload=bytes(PAYLOAD_BYTES_MAX + 1))
    request = wire.BatchPublishRequest(topic=topic, messages=[message, large])
    assert refused(sluice, request, "BatchPublish")[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert topic not in list(client.topics())

    assert len(sluice.batch(topic, *[b"m"] * 1000).results) == 1000


@pytest.mark.parametrize("name", ["", "a/b", "ä", "x" * 256, "a b", "a\n"])
def test_a_wrong_name_of_a_topic_is_refused_by_every_call(sluice: Sluice, name: str) -> None:
    status, text = refused(sluice, wire.PublishRequest(topic=name))
    assert (status, text.startswith("topic: ")) == (INVALID, True)
    request = wire.BatchPublishRequest(topic=name, messages=[wire.BatchMessage()])
    assert refused(sluice, request, "BatchPublish")[0] is INVALID
    assert sluice.subscribe(name).status()[0] is INVALID


def test_a_name_may_have_255_characters(sluice: Sluice) -> None:
    assert sluice.publish("A-z_0." + "x" * 249).sequence


def test_a_payload_may_have_4_mib_and_more_is_exhausted(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    sluice.publish(topic, bytes(PAYLOAD_BYTES_MAX))

    for size in (PAYLOAD_BYTES_MAX + 1, 2 * PAYLOAD_BYTES_MAX):
        status, text = refused(sluice, wire.PublishRequest(topic=topic, payload=bytes(size)))
        assert status is grpc.StatusCode.RESOURCE_EXHAUSTED, text
    assert client.topic(topic).describe().partitions[0].next_offset == 1


def test_what_is_no_message_of_the_protocol_is_the_callers_fault(sluice: Sluice) -> None:
    call: Any = sluice.channel.unary_unary("/sluice.v1.Sluice/Publish")
    with pytest.raises(grpc.RpcError) as found:
        call(b"\xff\xff\xff", timeout=SECONDS)
    assert found.value.code() is INVALID
    assert found.value.details() == "request: it is no PublishRequest of sluice.v1"


def test_a_closed_topic_takes_no_message(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    client.create_topic(topic, close=True)
    status, _ = refused(sluice, wire.PublishRequest(topic=topic))
    assert status is grpc.StatusCode.FAILED_PRECONDITION


def test_topics_are_listed_with_their_times_and_without_those_that_nobody_can_name(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    sluice.publish(topic)
    client.create_topic(f"{topic}/stream")

    found = sluice.topics()

    assert found[topic] == client.describe_topic(topic).created_at_ms
    assert not [each for each in found if "/" in each]
    assert list(found) == sorted(found)


def test_a_credential_that_is_none_is_refused(address: str) -> None:
    basic = "Basic " + base64.b64encode(b"no-colon").decode()
    for authorization in ("Bearer", "Digest x", basic):
        with Sluice(address, authorization=authorization) as wrong:
            status, _ = refused(wrong, wire.PublishRequest(topic="t"))
            assert status is grpc.StatusCode.UNAUTHENTICATED
