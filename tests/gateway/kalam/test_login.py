"""Logging in as clients of KalamDB do, and what each of its roles may do."""

import base64
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from queueber.clock import SystemClock
from queueber.testing import ServerProcess, running_server
from tests.gateway.kalam.conftest import PASSWORD, ROLES, Kalam
from tests.support.callers import add_user, remove_entries
from tests.support.http import running_gateway
from tests.support.web_tokens import claims, sign

NewTopic = Callable[..., str]
CONSUME = "/v1/api/topics/consume"


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("way", ["login", "basic"])
def test_users_may_not_consume_and_all_others_may(
    kalam: Kalam, new_topic: NewTopic, role: str, way: str
) -> None:
    topic = new_topic(2)
    basic = base64.b64encode(f"a-{role}:{PASSWORD}".encode()).decode()
    header = f"Basic {basic}"
    if way == "login":
        header = f"Bearer {kalam.log_in(f'a-{role}').json['access_token']}"
    expected = 403 if role == "user" else 200

    asked: dict[str, dict[str, object]] = {
        CONSUME: {"group_id": "g", "start": "Earliest", "timeout_seconds": 0},
        "/api/topics/consume": {"start": "Earliest", "timeout_seconds": 0},
        "/v1/api/topics/ack": {"group_id": "g", "upto_offset": 0},
        "/v1/api/topics/latest-offsets": {"partitions": [{"topic_id": topic}]},
    }
    for path, body in asked.items():
        given = {"topic_id": topic, **body}
        answered = kalam.gateway.ask("POST", path, given, headers={"Authorization": header})
        assert answered.status == expected, (path, answered.body)
        if role == "user":
            assert answered.json["code"] == "FORBIDDEN"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, 200), ({"roles": ["user"]}, 403), ({"exp": 1}, 401), ({"aud": "others"}, 401)],
)
def test_web_tokens_of_an_issuer_are_taken_as_well(
    kalam: Kalam, new_topic: NewTopic, changes: dict[str, object], expected: int
) -> None:
    body = {"topic_id": new_topic(1), "start": "Earliest", "timeout_seconds": 0}
    given = sign(claims(SystemClock().now_ms(), **changes))

    assert kalam.ask(CONSUME, body, token=given).status == expected


def test_a_login_says_who_the_user_is_and_until_when(kalam: Kalam) -> None:
    answered = kalam.log_in("a-dba")

    found = answered.json
    assert answered.status == 200
    assert (found["user"]["id"], found["user"]["role"]) == ("a-dba", "dba")
    assert found["admin_ui_access"] is True
    left = datetime.fromisoformat(found["expires_at"]) - datetime.now(UTC)
    assert 3500 < left.total_seconds() < 3601
    me = kalam.gateway.ask(
        "GET", "/v1/api/auth/me", headers={"Authorization": f"Bearer {found['access_token']}"}
    )
    assert me.json["user"] == found["user"]


def test_a_refresh_token_gives_new_tokens_and_nothing_else(
    kalam: Kalam, new_topic: NewTopic
) -> None:
    refresh = kalam.log_in("a-service").json["refresh_token"]

    in_header = kalam.ask("/v1/api/auth/refresh", None, token=refresh)
    in_body = kalam.gateway.ask("POST", "/v1/api/auth/refresh", {"refresh_token": refresh})

    body = {"topic_id": new_topic(1), "timeout_seconds": 0}
    for answered in (in_header, in_body):
        assert answered.status == 200, answered.body
        assert kalam.ask(CONSUME, body, token=answered.json["access_token"]).status == 200
    assert kalam.ask(CONSUME, body, token=refresh).status == 403
    access = in_body.json["access_token"]
    assert kalam.ask("/v1/api/auth/refresh", None, token=access).status == 403


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"user": "a-dba", "password": "wrong"}, 401),
        ({"user": "nobody", "password": PASSWORD}, 401),
        ({"password": PASSWORD}, 400),
        ({"user": "a-dba"}, 400),
        ({"user": "a-dba", "password": ""}, 400),
    ],
)
def test_a_wrong_login_is_refused(kalam: Kalam, body: object, status: int) -> None:
    answered = kalam.gateway.ask("POST", "/v1/api/auth/login", body)

    assert answered.status == status
    assert set(answered.json) == {"error", "code"}
    assert answered.json["code"] == ("UNAUTHORIZED" if status == 401 else "INVALID_ARGUMENT")


def test_requests_without_a_right_token_are_refused(kalam: Kalam) -> None:
    for header in ({}, {"Authorization": "Bearer qbs.x.y"}, {"Authorization": "Bearer eyJ.a.b"}):
        answered = kalam.gateway.ask("POST", CONSUME, {"topic_id": "t"}, headers=header)
        assert (answered.status, answered.json["code"]) == (401, "UNAUTHORIZED")
    assert kalam.gateway.ask("POST", "/v1/api/auth/refresh").status == 401


def test_what_needs_no_credential(kalam: Kalam) -> None:
    ask = kalam.gateway.ask

    assert ask("GET", "/v1/api/healthcheck").json["status"] == "healthy"
    assert ask("GET", "/health").json["api_version"] == "v1"
    assert ask("GET", "/v1/api/auth/status").json["needs_setup"] is False
    assert ask("POST", "/v1/api/auth/logout", {}).status == 200
    setup = ask("POST", "/v1/api/auth/setup", {"user": "x", "password": "y"})
    assert (setup.status, setup.json["code"]) == (409, "ALREADY_EXISTS")


def test_tokens_outlive_restarts_and_end_with_the_password(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    add_user(file, "ann", PASSWORD, "service")
    options = ("--tokens-file", str(file))
    with running_server(*options, data_dir=tmp_path / "data") as server:
        with running_gateway(server.address) as gateway:
            token = Kalam(gateway, "").log_in("ann").json["access_token"]
        server.kill()
        server.start()
        with running_gateway(server.address) as gateway:
            kalam = Kalam(gateway, token)
            assert kalam.ask(CONSUME, {"topic_id": "t"}).status == 404
            remove_entries(file, "ann")
            add_user(file, "ann", PASSWORD + "!", "service")
            _reload(server)
            assert kalam.ask(CONSUME, {"topic_id": "t"}).status == 401
            assert kalam.log_in("ann").status == 401
            assert kalam.log_in("ann", PASSWORD + "!").status == 200
            log = gateway.log_file.read_text()
    assert token not in log
    assert PASSWORD not in log


def _reload(server: ServerProcess) -> None:
    assert server.process is not None
    server.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)  # nobody tells when it has read the file


def test_a_server_that_is_not_protected_takes_any_login() -> None:
    with running_server() as server, running_gateway(server.address) as gateway:
        kalam = Kalam(gateway, "")
        login = kalam.log_in("anybody", "anything").json
        refreshed = kalam.ask("/v1/api/auth/refresh", None, token=login["refresh_token"])
        asked = kalam.ask(CONSUME, {"topic_id": "t"}, token=refreshed.json["access_token"])

    assert login["user"]["id"] == "anybody"
    assert asked.status == 404
