"""Every route for every role: the gateway passes on who calls, and the server decides."""

import contextlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import queueber
from queueber.auth.roles import ROLES
from queueber.gateway.app import make_app
from queueber.gateway.routes import Route
from queueber.gateway.settings import GatewaySettings
from queueber.testing import running_server
from tests.gateway.route_rights import RIGHTS, STREAMS, may
from tests.support.callers import add_token, add_user
from tests.support.http import Answered, GatewayProcess, running_gateway, to_base64
from tests.support.webhooks import write_key

ROUTES = {
    (route.method, route.path): route
    for route in make_app(GatewaySettings()).table.routes
    if route.uses_client and (route.method, route.path) not in STREAMS
}


class Protected:
    """A protected server, its gateway, and a token for each role."""

    def __init__(
        self, gateway: GatewayProcess, tokens: dict[str, str], admin: queueber.Client
    ) -> None:
        self.gateway = gateway
        self.tokens = tokens
        self._admin = admin
        self._numbers = count()

    def ask(self, route: Route, header: str | None) -> Answered:
        path = route.path.replace("{id}", bytes(16).hex())
        path = path.replace("{", "").replace("*", "").replace("}", "")
        headers = {} if header is None else {"Authorization": header}
        if route.tag == "streams":
            return self._ask_stream(route, path, headers)
        body = route.body_example if route.body is not None else None
        if route.path.endswith("/poll"):
            body = {"wait_ms": 0}
        if route.path.endswith("/find"):
            path += f"?id={bytes(16).hex()}"
        if route.tag == "operate":
            self._make_dead_letter()
        if route.tag == "schedules":
            self._admin.schedule("schedule", "@daily", queue="queue")
            if route.method == "PUT":
                body = {"when": "@daily", "queue": "queue"}
        if route.path.endswith(("/publish", "/together")) or "{topic}" in route.path:
            self._make_topics()
        if route.tag == "kalamdb":
            self._make_group()
        if route.tag == "subscriptions":
            self._make_subscription(is_wanted=route.method != "PUT")
        return self.gateway.ask(route.method, path, body, headers=headers)

    def _ask_stream(self, route: Route, path: str, headers: dict[str, str]) -> Answered:
        with contextlib.suppress(queueber.AlreadyExists):
            self._admin.create_topic("path", content_type="text/plain")
        raw = b"x" if route.takes_bytes else None
        if route.takes_bytes:
            headers["content-type"] = "text/plain"
        if route.path.endswith("/_schema"):
            with contextlib.suppress(queueber.AlreadyExists):
                self._admin.create_topic("json", content_type="application/json")
            path = "/v1/stream/json/_schema"
            # Another one each time: one that is in force is not set again.
            raw = b'{"title": "%d"}' % next(self._numbers) if route.takes_bytes else None
        return self.gateway.ask(route.method, path, raw=raw, headers=headers)

    def _make_subscription(self, *, is_wanted: bool) -> None:
        """One that the roles use; none for a role that is to create it."""
        path = "/v1/stream/__ds/subscriptions/subscription"
        body = {"type": "pull-wake", "streams": ["orders"], "wake_stream": "orders"}
        as_admin = {"Authorization": f"Bearer {self.tokens['admin']}"}
        if is_wanted:
            self.gateway.ask("PUT", path, body, headers=as_admin)
        else:
            self.gateway.ask("DELETE", path, headers=as_admin)

    def _make_dead_letter(self) -> None:
        """Else there would be nothing to purge or redrive, and the server would not be asked."""
        queue = self._admin.queue("queue")
        with contextlib.suppress(queueber.NotFound):  # it was deleted, and is created by the next
            queue.resume()
        queue.resume()
        self._admin.configure_queue("queue", attempts_max=1)
        queue.add(b"x")
        queue.poll().fail("on purpose")

    def _make_group(self) -> None:
        """That of the examples, with a message that can be acknowledged."""
        with contextlib.suppress(queueber.AlreadyExists):
            self._admin.create_topic("shop.orders")
        topic = self._admin.topic("shop.orders")
        while topic.describe().partitions[0].next_offset < 18:
            topic.publish([b"x"] * 18)
        topic.consume("billing", limit=1)

    def _make_topics(self) -> None:
        """Those of the examples. One that was deleted or closed is made anew."""
        for name in ("topic", "orders", "audit", "packed", "bought"):
            with contextlib.suppress(queueber.AlreadyExists):
                self._admin.create_topic(name)
        try:
            self._admin.topic("topic").publish(b"x")
        except (queueber.FailedPrecondition, queueber.NotFound):
            self._admin.delete_topic("topic")
            self._admin.create_topic("topic")
        for _ in range(2):  # the first time it may be told that the topic was deleted
            with contextlib.suppress(queueber.AlreadyExists, queueber.NotFound):
                self._admin.topic("topic").create_group("group", kind="shared")


@pytest.fixture(scope="module")
def protected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Protected]:
    file: Path = tmp_path_factory.mktemp("callers") / "tokens"
    tokens = {role: add_token(file, role) for role in ROLES}
    tokens["elsewhere"] = add_token(file, "admin", queues=("other-*",), topics=(), name="elsewhere")
    add_user(file, "ann", "a b:c", "admin")
    own, keys = file.with_name("own"), file.with_name("keys.pem")
    own.write_text(add_token(file, "service", name="gateway"))
    write_key(keys)
    options = ("--subscriptions-token-file", str(own), "--webhook-key-file", str(keys))
    with (
        running_server("--tokens-file", str(file)) as server,
        queueber.connect(server.address, token=tokens["admin"]) as client,
        running_gateway(server.address, *options) as gateway,
    ):
        found = Protected(gateway, tokens, client)
        client.create_queue("queue")
        yield found


def test_there_is_a_decision_for_every_route() -> None:
    assert set(RIGHTS) - STREAMS == set(ROUTES)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_just_what_its_actions_allow(protected: Protected, role: str) -> None:
    wrong = []
    for key, route in ROUTES.items():
        answered = protected.ask(route, f"Bearer {protected.tokens[role]}")
        is_allowed = may(ROLES[role], RIGHTS[key])
        if (answered.status == 403) is is_allowed or answered.status in (401, 500, 503):
            wrong.append((key, answered.status, answered.body[:200]))

    assert wrong == []


@pytest.mark.parametrize(
    "header",
    [
        None,
        "Bearer qb_wrong_wrong",
        "Bearer",
        "Basic ?",
        "Digest x",
        f"Basic {to_base64(b'ann:x')}",
    ],
)
def test_nobody_may_do_anything(protected: Protected, header: str | None) -> None:
    route = ROUTES["POST", "/v1/queues/{queue}/items"]

    refused = protected.ask(route, header)

    assert (refused.status, refused.code) == (401, "UNAUTHENTICATED")
    assert refused.headers["www-authenticate"].startswith("Bearer ")
    assert "wrong_wrong" not in refused.body.decode()


def test_a_caller_whose_pattern_does_not_match_may_do_nothing(protected: Protected) -> None:
    header = f"Bearer {protected.tokens['elsewhere']}"

    statuses = {key: protected.ask(route, header).status for key, route in ROUTES.items()}

    needed = {key for key, rights in RIGHTS.items() if rights} - STREAMS
    assert {key for key, status in statuses.items() if status == 403} == needed


def test_a_person_shows_a_password(protected: Protected) -> None:
    header = {"Authorization": f"Basic {to_base64(b'ann:a b:c')}"}

    shown = protected.gateway.ask("GET", "/v1/whoami", headers=header)

    assert shown.json["name"] == "ann"
    assert shown.json["grants"] == [{"role": "admin", "queues": ["*"], "topics": ["*"]}]


def test_probes_need_no_credential(protected: Protected) -> None:
    assert protected.gateway.ask("GET", "/healthz").status == 200
    assert [protected.gateway.ask("GET", "/readyz").status for _ in range(2)] == [200, 200]


def test_no_secret_is_in_the_log(protected: Protected) -> None:
    log = protected.gateway.log_file.read_text()

    assert not [token for token in protected.tokens.values() if token in log]


def test_who_may_only_add_appends_to_a_stream_that_has_a_schema(protected: Protected) -> None:
    """The right to add is enough to learn what messages must be like."""
    headers = {"content-type": "application/json"}
    admin = headers | {"Authorization": f"Bearer {protected.tokens['admin']}"}
    producer = headers | {"Authorization": f"Bearer {protected.tokens['producer']}"}
    path = "/v1/stream/checked"
    ask = protected.gateway.ask
    ask("PUT", path, raw=b"", headers=admin)
    ask("PUT", f"{path}/_schema", raw=b'{"type": "object"}', headers=admin)

    fits, does_not = (ask("POST", path, raw=body, headers=producer) for body in (b"{}", b"3"))

    assert (fits.status, does_not.status) == (204, 400)
    assert does_not.json["detail"] == 'body: message 0: the value is not of type "object"'
    assert ask("GET", path, headers=admin).json == [{}]
