"""A normal caller of gRPC that measures."""

import threading
import time
from typing import Any, Self

import grpc

from queueber.gateway.grpc import sluice_pb2 as wire

_PAUSE_SECONDS = 0.005
_SECONDS_MAX = 30.0


class Caller:
    """Publishes a message over and over, and measures each call."""

    def __init__(self, address: str, authority: bytes | None = None) -> None:
        """`authority` is the certificate of that of the port, if it speaks TLS."""
        if authority is None:
            self._channel = grpc.insecure_channel(address)
        else:
            trusted = grpc.ssl_channel_credentials(authority)
            self._channel = grpc.secure_channel(address, trusted)
        self._seconds: list[float] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="caller", daemon=True)
        self.failures: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._is_over.set()
        self._thread.join(30)
        self._channel.close()

    def take_p99_ms(self) -> float:
        """Of the calls since it was last asked."""
        taken, self._seconds = sorted(self._seconds), []
        return taken[int(len(taken) * 0.99)] * 1000 if taken else float("inf")

    def _run(self) -> None:
        publish: Any = self._channel.unary_unary(
            "/sluice.v1.Sluice/Publish",
            request_serializer=wire.PublishRequest.SerializeToString,
            response_deserializer=wire.PublishResponse.FromString,
        )
        request = wire.PublishRequest(topic="witness", payload=bytes(100))
        while not self._is_over.wait(_PAUSE_SECONDS):
            began = time.perf_counter()
            try:
                publish(request, timeout=_SECONDS_MAX, wait_for_ready=True)
                self._seconds.append(time.perf_counter() - began)
            except grpc.RpcError as error:
                found: Any = error
                self.failures.append(f"{found.code().name}: {found.details()}")
