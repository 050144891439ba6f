"""A protected server with a user of each role of KalamDB, and a gateway before it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import queueber
from queueber.testing import ServerProcess, running_server
from tests.support.callers import add_token, add_user
from tests.support.http import Answered, GatewayProcess, running_gateway
from tests.support.web_tokens import jwt_flags

PASSWORD = "correct horse battery staple"
ROLES = ("user", "service", "dba", "system")
_numbers = count()


@dataclass
class Kalam:
    """A client that sends what those of KalamDB send."""

    gateway: GatewayProcess
    token: str

    def ask(self, path: str, body: object, *, token: str | None = None) -> Answered:
        headers = {"Authorization": f"Bearer {token or self.token}"}
        return self.gateway.ask("POST", path, body, headers=headers)

    def consume(self, topic: str, group: str | None = None, **more: Any) -> Any:
        body = {"topic_id": topic, "group_id": group, "start": "Earliest", "timeout_seconds": 0}
        answered = self.ask("/v1/api/topics/consume", body | more)
        assert answered.status == 200, answered.body
        return answered.json

    def ack(self, topic: str, group: str, upto: int, partition: int = 0) -> int:
        body = {
            "topic_id": topic, "group_id": group, "partition_id": partition, "upto_offset": upto,
        }  # fmt: skip
        answered = self.ask("/v1/api/topics/ack", body)
        assert answered.status == 200, answered.body
        assert answered.json["success"] is True
        return int(answered.json["acknowledged_offset"])

    def log_in(self, user: str, password: str = PASSWORD) -> Answered:
        return self.gateway.ask("POST", "/v1/api/auth/login", {"user": user, "password": password})


@pytest.fixture(scope="module")
def tokens_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file: Path = tmp_path_factory.mktemp("callers") / "tokens.toml"
    for role in ROLES:
        add_user(file, f"a-{role}", PASSWORD, role)
    return file


@pytest.fixture(scope="module")
def token(tokens_file: Path) -> str:
    return add_token(tokens_file, "admin")


@pytest.fixture(scope="module")
def protected(tokens_file: Path, token: str) -> Iterator[ServerProcess]:
    web_tokens = jwt_flags(tokens_file.with_name("keys.json"))
    with running_server("--tokens-file", str(tokens_file), *web_tokens) as running:
        yield running


@pytest.fixture(scope="module")
def admin(protected: ServerProcess, token: str) -> Iterator[queueber.Client]:
    with queueber.connect(protected.address, token=token) as client:
        yield client


@pytest.fixture(scope="module")
def kalam(protected: ServerProcess, token: str) -> Iterator[Kalam]:
    options = ("--consume-lease-ms", "2000", "--consume-wait-ms-max", "2000")
    with running_gateway(protected.address, *options) as gateway:
        yield Kalam(gateway, token)


@pytest.fixture
def new_topic(admin: queueber.Client) -> Callable[..., str]:
    """Makes a topic with messages in each partition, and returns its name."""

    def make(messages: int = 0, *, partitions: int = 1, **more: Any) -> str:
        name = f"app.t{next(_numbers)}"
        admin.create_topic(name, partitions=partitions, **more)
        for partition in range(partitions if messages else 0):
            payloads = [b"%d" % number for number in range(messages)]
            admin.topic(name).publish(payloads, partition=partition)
        return name

    return make


def offsets(answer: Any) -> list[int]:
    return [each["offset"] for each in answer["messages"]]
