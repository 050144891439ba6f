"""Streams for tests, each of which has a path that no other has."""

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from tests.support.http import Answered, GatewayProcess

JSON = {"content-type": "application/json"}
_numbers = count()


class Stream:
    """A stream of a gateway, by its path."""

    def __init__(self, gateway: GatewayProcess, path: str) -> None:
        self.gateway = gateway
        self.path = path

    def ask(self, method: str, last: str = "", body: bytes = b"", /, **headers: str) -> Answered:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        path = f"/v1/stream/{self.path}{last}"
        return self.gateway.ask(method, path, raw=body, headers=JSON | named)

    def put(self, body: bytes = b"", /, **headers: str) -> Answered:
        return self.ask("PUT", "", body, **headers)

    def post(self, *values: Any, **headers: str) -> Answered:
        return self.ask("POST", "", json.dumps(values).encode(), **headers)

    def set_schema(self, schema: object, **headers: str) -> Answered:
        return self.ask("PUT", "/_schema", json.dumps(schema).encode(), **headers)

    def get(self, last: str = "", /, **headers: str) -> Answered:
        return self.ask("GET", last, b"", **headers)

    @property
    def values(self) -> list[Any]:
        return list(self.get().json)


@pytest.fixture
def stream(gateway: GatewayProcess) -> Stream:
    """A new path; nothing is there yet."""
    return Stream(gateway, f"s/{next(_numbers)}")


@pytest.fixture
def json_stream(stream: Stream) -> Stream:
    assert stream.put().status == 201
    return stream


Refusal = Callable[[Answered], tuple[int, str]]


def refusal(answered: Answered) -> tuple[int, str]:
    return answered.status, answered.json["detail"]
