"""A client of streams, and a path that no other test has."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import pytest

from queueber.testing import ServerProcess
from tests.support.http import Answered, GatewayProcess, running_gateway

_numbers = count()
ZERO = "0000000000000000_0000000000000000"
WAIT_MS = 300


@dataclass(slots=True)
class Stream:
    """A path of a gateway, with the methods of HTTP."""

    gateway: GatewayProcess
    path: str

    def _ask(self, method: str, query: str, body: bytes | None, named: dict[str, str]) -> Answered:
        headers = {name.replace("_", "-"): value for name, value in named.items()}
        path = f"/v1/stream/{self.path}{query}"
        return self.gateway.ask(method, path, raw=body, headers=headers)

    def put(self, body: bytes = b"", **headers: str) -> Answered:
        headers.setdefault("content_type", "text/plain")
        return self._ask("PUT", "", body, headers)

    def post(self, body: bytes = b"", **headers: str) -> Answered:
        headers.setdefault("content_type", "text/plain")
        return self._ask("POST", "", body, headers)

    def get(self, query: str = "", **headers: str) -> Answered:
        return self._ask("GET", query, None, headers)

    def head(self, **headers: str) -> Answered:
        return self._ask("HEAD", "", None, headers)

    def delete(self, **headers: str) -> Answered:
        return self._ask("DELETE", "", None, headers)

    @property
    def tail(self) -> str:
        return self.head().headers["stream-next-offset"]

    def state(self) -> tuple[bytes, str | None, str]:
        """Everything that an append could change."""
        read = self.get()
        return read.body, read.headers.get("stream-closed"), read.headers["stream-next-offset"]


@pytest.fixture(scope="package")
def gateway(server: ServerProcess) -> Iterator[GatewayProcess]:
    with running_gateway(server.address, "--stream-wait-ms", str(WAIT_MS)) as running:
        yield running


@pytest.fixture
def new_stream(gateway: GatewayProcess) -> Callable[[], Stream]:
    return lambda: Stream(gateway, f"tests/s{next(_numbers)}")


@pytest.fixture
def stream(new_stream: Callable[[], Stream]) -> Stream:
    return new_stream()
