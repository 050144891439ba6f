"""Publish and BatchPublish. Concurrent calls of one caller are sent to the server together."""

from concurrent.futures import Future

from queueber.client import AsyncClient, NewMessage
from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.gateway.grpc import sluice_pb2 as wire
from queueber.gateway.grpc.names import check_topic_name, message_id_text
from queueber.limits import PAYLOAD_BYTES_MAX
from queueber.model import Published

BATCH_MESSAGES_MAX = 1000


def publish(client: AsyncClient, request: wire.PublishRequest) -> "Future[Published]":
    topic, payload = check_topic_name(request.topic), request.payload
    _check_payload("payload", payload)
    attributes = request.attributes
    message = NewMessage(payload, attributes=dict(attributes)) if attributes else payload
    return client.topic(topic).publish_soon(message)


def publish_response(done: Published) -> wire.PublishResponse:
    return wire.PublishResponse(
        message_id=message_id_text(done.ids[0]), sequence=done.sequences[0], timestamp=done.at_ms
    )


def batch_publish(client: AsyncClient, request: wire.BatchPublishRequest) -> "Future[Published]":
    topic, messages = check_topic_name(request.topic), request.messages
    if not 1 <= len(messages) <= BATCH_MESSAGES_MAX:
        raise InvalidArgument(
            f"messages: there are {len(messages)}; a batch has 1 to {BATCH_MESSAGES_MAX}"
        )
    for at, each in enumerate(messages):
        _check_payload(f"messages[{at}].payload", each.payload)
    return client.topic(topic).publish_soon(
        [NewMessage(each.payload, attributes=dict(each.attributes)) for each in messages]
    )


def batch_response(done: Published) -> wire.BatchPublishResponse:
    results = [
        wire.PublishResult(message_id=message_id_text(each), sequence=sequence)
        for each, sequence in zip(done.ids, done.sequences, strict=True)
    ]
    return wire.BatchPublishResponse(results=results, timestamp=done.at_ms)


def _check_payload(field: str, payload: bytes) -> None:
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise ResourceExhausted(
            f"{field}: it has {len(payload)} bytes; the limit is {PAYLOAD_BYTES_MAX}"
        )
