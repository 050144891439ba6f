"""A gateway with gRPC in its own process, and a client of Sluice made from our .proto."""

import contextlib
import queue
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import grpc

from queueber.config import split_address
from queueber.gateway.grpc import sluice_pb2 as wire
from tests.support.http import GatewayProcess, running_gateway

SECONDS = 20.0
_START_SECONDS_MAX = 30.0
_SIZES = [("grpc.max_receive_message_length", 16 << 20), ("grpc.max_send_message_length", 64 << 20)]


@contextlib.contextmanager
def running_grpc(
    server: str, *options: str, port: str = "0"
) -> Iterator[tuple[GatewayProcess, str]]:
    """The gateway, and the address of its gRPC."""
    with tempfile.TemporaryDirectory(prefix="queueber-") as folder:
        file = Path(folder) / "grpc"
        named = ("--grpc", f"127.0.0.1:{port}", "--grpc-address-file", str(file))
        with running_gateway(server, *named, *options) as gateway:
            yield gateway, file.read_text()


def wait_listening(address: str) -> None:
    """A gateway listens there itself, once it has started; nobody keeps the port for it."""
    give_up_at = time.monotonic() + _START_SECONDS_MAX
    while True:
        try:
            socket.create_connection(split_address(address)).close()
        except ConnectionRefusedError:
            assert time.monotonic() < give_up_at, f"nothing listens at {address}"
            time.sleep(0.005)
        else:
            return


class Sluice:
    """What grpcio makes of the service, with one channel."""

    def __init__(
        self,
        address: str,
        *,
        authorization: str | None = None,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        self.channel = (
            grpc.insecure_channel(address, _SIZES)
            if credentials is None
            else grpc.secure_channel(address, credentials, _SIZES)
        )
        self._metadata = [("authorization", authorization)] if authorization else []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.channel.close()

    def _call(self, name: str, request: Any, response: Any) -> Any:
        call: Any = self.channel.unary_unary(
            f"/sluice.v1.Sluice/{name}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString,
        )
        return call(request, timeout=SECONDS, metadata=self._metadata, wait_for_ready=True)

    def publish(self, topic: str, payload: bytes = b"", **attributes: str) -> wire.PublishResponse:
        request = wire.PublishRequest(topic=topic, payload=payload, attributes=attributes)
        found: wire.PublishResponse = self._call("Publish", request, wire.PublishResponse)
        return found

    def batch(self, topic: str, *payloads: bytes) -> wire.BatchPublishResponse:
        messages = [wire.BatchMessage(payload=each) for each in payloads]
        request = wire.BatchPublishRequest(topic=topic, messages=messages)
        found: wire.BatchPublishResponse = self._call(
            "BatchPublish", request, wire.BatchPublishResponse
        )
        return found

    def topics(self) -> dict[str, int]:
        found = self._call("ListTopics", wire.ListTopicsRequest(), wire.ListTopicsResponse)
        return {each.name: each.created_at for each in found.topics}

    def subscribe(self, topic: str, group: str = "", **init: Any) -> "Subscribed":
        """Open a stream and send its init."""
        stream = Subscribed(self.channel, self._metadata)
        stream.init(topic, group, **init)
        return stream


class Subscribed:
    """One stream; what is said is sent in order."""

    def __init__(self, channel: grpc.Channel, metadata: Any = ()) -> None:
        self._said: queue.SimpleQueue[wire.SubscribeUpstream | None] = queue.SimpleQueue()
        call: Any = channel.stream_stream(
            "/sluice.v1.Sluice/Subscribe",
            request_serializer=wire.SubscribeUpstream.SerializeToString,
            response_deserializer=wire.SubscribeDownstream.FromString,
        )
        self.call = call(iter(self._said.get, None), metadata=metadata, wait_for_ready=True)
        self._found: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def say(self, **request: Any) -> None:
        self._said.put(wire.SubscribeUpstream(**request))

    def init(self, topic: str, group: str = "", **given: Any) -> None:
        given.setdefault("initial_position", wire.InitialPosition.EARLIEST)
        self.say(init=wire.SubscriptionInit(topic=topic, consumer_group=group, **given))

    def credit(self, credits: int) -> None:
        self.say(credit=wire.CreditGrant(credits=credits))

    def ack(self, message_id: str) -> None:
        self.say(ack=wire.Ack(message_id=message_id))

    def done(self) -> None:
        """Close our side."""
        self._said.put(None)

    def take(self, count: int) -> list[wire.MessageDelivery]:
        """The next messages, which must come."""
        return [next(self.call).delivery for _ in range(count)]

    def payloads(self, count: int) -> list[bytes]:
        return [each.payload for each in self.take(count)]

    def status(self) -> tuple[grpc.StatusCode, str]:
        """How it ends; fails if a message comes before."""
        try:
            found = list(self.call)
        except grpc.RpcError:
            found = []
        assert found == []
        return self.call.code(), self.call.details()

    def cancel(self) -> None:
        self.call.cancel()
        self.done()
