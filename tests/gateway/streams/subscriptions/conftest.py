"""A subscription of each test's own, and streams that it matches."""

import json
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

import queueber
from queueber.testing import ServerProcess, running_server
from tests.gateway.streams.conftest import WAIT_MS
from tests.support.http import Answered, GatewayProcess, running_gateway

_numbers = count()
_WAIT_SECONDS = 20.0
JSON = {"content-type": "application/json"}


class Subscriber:
    """The calls about one subscription."""

    def __init__(self, gateway: GatewayProcess, client: queueber.Client, number: int) -> None:
        self.gateway = gateway
        self.client = client
        self.id = f"s{number}"
        self.root = f"events{number}"
        self.wake_stream = f"wake{number}"
        self.headers: dict[str, str] = {}

    def ask(self, method: str, rest: str = "", body: object = None, token: str = "") -> Answered:
        path = f"/v1/stream/__ds/subscriptions/{self.id}{rest}"
        headers = {"authorization": f"Bearer {token}"} if token else dict(self.headers)
        return self.gateway.ask(method, path, body, headers=headers)

    def create(self, **named: Any) -> Answered:
        body = {"type": "pull-wake", "pattern": f"{self.root}/*", "wake_stream": self.wake_stream}
        if "url" in named:
            body = {"type": "webhook", "pattern": f"{self.root}/*"}
            named["webhook"] = {"url": named.pop("url")}
        return self.ask("PUT", "", {**body, "lease_ttl_ms": 1000, **named})

    def make_stream(self, name: str, *, at: str = "") -> str:
        path = at or f"{self.root}/{name}"
        self.client.create_topic(path, content_type="application/json")
        return path

    def put_stream(self, name: str, values: object = ()) -> str:
        """Create a stream with these values, through the gateway."""
        path = f"{self.root}/{name}"
        created = self.gateway.ask("PUT", f"/v1/stream/{path}", values or None, headers=JSON)
        assert created.status == 201, created
        return path

    def append(self, path: str, count: int = 1) -> None:
        """As another program does: the gateway is not told."""
        self.client.topic(path).publish([b"1"] * count)

    def claim(self, worker: str = "w") -> Answered:
        return self.ask("POST", "/claim", {"worker": worker})

    def claim_soon(self, worker: str = "w") -> Any:
        """What a claim answers as soon as there is work."""
        return eventually(lambda: self.claim(worker), lambda each: each.status == 200).json

    def ack(self, claimed: Any, acks: object = (), *, done: bool = False) -> Answered:
        wake = {"wake_id": claimed["wake_id"], "generation": claimed["generation"]}
        body = {**wake, "acks": list(acks), "done": done}  # type: ignore[call-overload]
        return self.ask("POST", "/ack", body, claimed["token"])

    def release(self, claimed: Any) -> Answered:
        wake = {"wake_id": claimed["wake_id"], "generation": claimed["generation"]}
        return self.ask("POST", "/release", wake, claimed["token"])

    def callback(self, woken: Any, acks: object = (), *, done: bool = False) -> Answered:
        wake = {"wake_id": woken["wake_id"], "generation": woken["generation"]}
        body = {**wake, "acks": list(acks), "done": done}  # type: ignore[call-overload]
        return self.ask("POST", "/callback", body, woken["callback_token"])

    def links(self) -> dict[str, tuple[str, str]]:
        """By path: the kind of the link, and where it is acknowledged up to."""
        shown = self.ask("GET").json["streams"]
        return {each["path"]: (each["link_type"], each["acked_offset"]) for each in shown}

    def events(self) -> list[Any]:
        page = self.client.topic(self.wake_stream).read()
        return [json.loads(each) for each in page.payloads]


def eventually(ask: Callable[[], Any], is_right: Callable[[Any], bool]) -> Any:
    """What was asked for, once it is right."""
    give_up_at = time.monotonic() + _WAIT_SECONDS
    while not is_right(found := ask()):
        assert time.monotonic() < give_up_at, found
        time.sleep(0.05)
    return found


def code_of(answered: Answered) -> tuple[int, str]:
    return answered.status, answered.json["error"]["code"]


def tails(claimed: Any) -> list[dict[str, str]]:
    """Acks of all that a claim or a webhook is about."""
    return [{"stream": each["path"], "offset": each["tail_offset"]} for each in claimed["streams"]]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """For a file: subscriptions of other files would keep its gateway busy."""
    with running_server() as running:
        yield running


@pytest.fixture(scope="module")
def gateway(server: ServerProcess) -> Iterator[GatewayProcess]:
    with running_gateway(server.address, "--stream-wait-ms", str(WAIT_MS)) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[queueber.Client]:
    with queueber.connect(server.address) as connected:
        yield connected


@pytest.fixture
def subscriber(gateway: GatewayProcess, client: queueber.Client) -> Iterator[Subscriber]:
    made = Subscriber(gateway, client, next(_numbers))
    client.create_topic(made.wake_stream, content_type="application/json")
    yield made
    made.ask("DELETE")
