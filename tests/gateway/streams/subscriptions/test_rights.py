"""Subscriptions of a protected server: whose rights count for what."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import queueber
from queueber.testing import ServerProcess, running_server
from tests.gateway.streams.subscriptions.conftest import Subscriber, code_of, eventually, tails
from tests.support.callers import add_token
from tests.support.http import GatewayProcess, running_gateway
from tests.support.webhooks import running_receiver, write_key


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("callers")


@pytest.fixture(scope="module")
def tokens(folder: Path) -> dict[str, str]:
    file = folder / "tokens"
    made = {role: add_token(file, role) for role in ("admin", "reader", "producer")}
    made["own"] = add_token(file, "service", name="gateway")
    made["narrow"] = add_token(
        file, "admin", topics=("__ds/subscriptions/*", "mine/*"), name="narrow"
    )
    made["worker"] = add_token(
        file, "service", topics=("__ds/subscriptions/w*", "shared/*"), name="worker"
    )
    return made


@pytest.fixture(scope="module")
def server(folder: Path, tokens: dict[str, str]) -> Iterator[ServerProcess]:
    with running_server("--tokens-file", str(folder / "tokens")) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(
    server: ServerProcess, folder: Path, tokens: dict[str, str]
) -> Iterator[GatewayProcess]:
    (folder / "own").write_text(tokens["own"] + "\n")
    options = [
        "--subscriptions-token-file", str(folder / "own"),
        "--webhook-key-file", str(write_key(folder / "keys.pem", 2)),
        "--webhook-loopback", "--public-url", "https://streams.example/",
    ]  # fmt: skip
    with running_gateway(server.address, *options) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: ServerProcess, tokens: dict[str, str]) -> Iterator[queueber.Client]:
    with queueber.connect(server.address, token=tokens["admin"]) as connected:
        yield connected


def as_caller(subscriber: Subscriber, token: str) -> Subscriber:
    """The same subscription, for another caller."""
    other = Subscriber(subscriber.gateway, subscriber.client, 0)
    other.id, other.root = subscriber.id, subscriber.root
    other.wake_stream = subscriber.wake_stream
    other.headers = {"authorization": f"Bearer {token}"}
    return other


@pytest.fixture
def admin(subscriber: Subscriber, tokens: dict[str, str]) -> Subscriber:
    subscriber.headers = {"authorization": f"Bearer {tokens['admin']}"}
    return subscriber


def test_a_webhook_is_sent_with_the_gateways_own_rights(
    admin: Subscriber, tokens: dict[str, str]
) -> None:
    with running_receiver() as receiver:
        created = admin.create(url=receiver.url)
        path = admin.make_stream("a")
        admin.append(path)
        woken = receiver.next().json

        called = admin.callback(woken, tails(woken), done=True)

    assert created.status == 201
    assert woken["callback_url"].startswith("https://streams.example/v1/stream/__ds/")
    assert (called.status, called.json["next_wake"]) == (200, False)
    assert not [token for token in tokens.values() if token in admin.gateway.log_file.read_text()]


def test_two_keys_are_published_and_the_first_signs(admin: Subscriber) -> None:
    with running_receiver() as receiver:
        kid = admin.create(url=receiver.url).json["webhook"]["signing"]["kid"]
    keys = admin.gateway.ask("GET", "/v1/stream/__ds/jwks.json").json["keys"]

    assert len(keys) == 2
    assert keys[0]["kid"] == kid


def test_a_subscription_may_not_see_more_than_its_creator(
    admin: Subscriber, tokens: dict[str, str]
) -> None:
    narrow = as_caller(admin, tokens["narrow"])
    narrow.client.create_topic("mine/wake")

    for wrong in (
        {"pattern": "theirs/*"}, {"pattern": "**"}, {"pattern": "*/a"}, {"pattern": "mine"},
        {"pattern": None, "streams": ["theirs/a"]}, {"wake_stream": "theirs/wake"},
    ):  # fmt: skip
        asked = {"pattern": "mine/*", "wake_stream": "mine/wake", **wrong}
        assert narrow.create(**asked).status == 403, wrong
    assert admin.ask("GET").status == 404
    assert narrow.create(pattern="mine/**", wake_stream="mine/wake").status == 201
    added = narrow.ask("POST", "/streams", {"streams": ["theirs/a"]})
    assert added.status == 403


def test_a_worker_needs_to_read_what_it_claims(admin: Subscriber, tokens: dict[str, str]) -> None:
    admin.id = "w-" + admin.id
    admin.create(pattern=None, streams=[f"{admin.root}/a"])
    path = admin.make_stream("a")
    admin.append(path)

    refused = as_caller(admin, tokens["worker"]).claim()

    assert (refused.status, refused.json["code"]) == (403, "PERMISSION_DENIED")


def test_who_may_only_read_learns_no_holder(admin: Subscriber, tokens: dict[str, str]) -> None:
    admin.create()
    admin.append(admin.make_stream("a"))
    eventually(admin.events, bool)
    admin.claim("one")

    for role in ("reader", "producer"):
        assert as_caller(admin, tokens[role]).claim().status == 403


def test_without_a_token_of_its_own_a_gateway_has_no_subscriptions(
    admin: Subscriber, server: ServerProcess
) -> None:
    with running_gateway(server.address) as bare:
        admin.gateway, trusted = bare, admin.gateway
        with running_receiver() as receiver:
            refused = [admin.create(), admin.create(url=receiver.url)]
        keys = bare.ask("GET", "/v1/stream/__ds/jwks.json")
        admin.gateway = trusted

    assert code_of(refused[0]) == (501, "SUBSCRIPTIONS_OFF")
    assert "QUEUEBER_GATEWAY_SUBSCRIPTIONS_TOKEN" in refused[0].json["detail"]
    assert refused[1].status in (400, 501)
    assert keys.status == 501


def test_without_a_key_it_has_none_either(
    admin: Subscriber, server: ServerProcess, folder: Path
) -> None:
    options = ("--subscriptions-token-file", str(folder / "own"))
    with running_gateway(server.address, *options) as bare:
        admin.gateway, trusted = bare, admin.gateway
        refused = admin.create()
        loopback = admin.create(url="http://127.0.0.1:8080/")
        admin.gateway = trusted

    assert code_of(refused) == (501, "SUBSCRIPTIONS_OFF")
    assert "--webhook-key-file" in refused.json["detail"]
    assert code_of(loopback) == (400, "WEBHOOK_URL_REJECTED")
