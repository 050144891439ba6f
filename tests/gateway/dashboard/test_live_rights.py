"""`/live` of a protected server: each caller is shown what it may read, and nothing else."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import queueber
from queueber.auth.roles import ROLES, Action
from queueber.testing import running_server
from tests.gateway.dashboard.test_live import Events, rows_of
from tests.support.callers import add_token
from tests.support.http import GatewayProcess, running_gateway

TOKENS: dict[str, str] = {}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    file: Path = tmp_path_factory.mktemp("tokens") / "tokens"
    TOKENS.update({role: add_token(file, role) for role in ROLES})
    TOKENS["ours"] = add_token(file, "operator", queues=("ours-*",), topics=("ours-*",))
    with running_server("--tokens-file", str(file)) as server:
        with queueber.connect(server.address, token=TOKENS["admin"]) as client:
            for name in ("ours-1", "theirs-1"):
                client.queue(name).add(b"x")
                client.topic(name).publish(b"x")
        with running_gateway(server.address) as running:
            yield running


@contextlib.contextmanager
def watching(gateway: GatewayProcess, query: str, token: str) -> Iterator[Events]:
    with contextlib.closing(gateway.connection(30)) as connection:
        connection.request("GET", f"/live?{query}", headers={"authorization": f"Bearer {token}"})
        yield Events(connection.getresponse())


def test_nobody_is_shown_anything_without_a_credential(gateway: GatewayProcess) -> None:
    for header in ({}, {"authorization": "Bearer nonsense"}):
        answer = gateway.ask("GET", "/live", headers=header)
        assert (answer.status, answer.code) == (401, "UNAUTHENTICATED")


@pytest.mark.parametrize("role", ROLES)
def test_a_role_sees_queues_and_topics_if_it_may_read(gateway: GatewayProcess, role: str) -> None:
    may_read = Action.READ in ROLES[role]

    with watching(gateway, "view=overview", TOKENS[role]) as events:
        names = set(rows_of(events.next("queues")))
        assert names == ({"default", "ours-1", "theirs-1"} if may_read else set())
        assert set(rows_of(events.next("topics"))) == (
            {"ours-1", "theirs-1"} if may_read else set()
        )
    for kind, name in (("queue", "ours-1"), ("topic", "ours-1")):
        with watching(gateway, f"view={kind}&{kind}={name}", TOKENS[role]) as events:
            if may_read:
                assert events.next(kind)["all"]
            else:
                assert events.next("problem")["problem"]["code"] == "PERMISSION_DENIED"


def test_patterns_decide_which_are_shown(gateway: GatewayProcess) -> None:
    with watching(gateway, "view=overview", TOKENS["ours"]) as events:
        assert set(rows_of(events.next("queues"))) == {"ours-1"}
        assert set(rows_of(events.next("topics"))) == {"ours-1"}
    with watching(gateway, "view=queue&queue=theirs-1", TOKENS["ours"]) as events:
        assert events.next("problem")["problem"]["code"] == "PERMISSION_DENIED"


def test_only_observers_are_shown_how_the_server_is(gateway: GatewayProcess) -> None:
    for who, is_shown in (("reader", True), ("ours", False)):
        with watching(gateway, "view=overview", TOKENS[who]) as events:
            known = dict(events.next("server")["rows"])
            assert known["server"]["is_protected"]
            assert (known["health"] is not None) is is_shown
