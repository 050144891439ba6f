"""Schedules over HTTP."""

from tests.support.http import GatewayProcess, to_base64

ONE = "/v1/schedules/nightly"
NIGHTLY = {
    "when": "0 3 * * *", "zone": "Europe/Berlin", "contents": to_base64(b"clean up"),
    "queue": "of-schedules", "missed": "skip", "priority": 7, "attributes": {"a": "b"},
    "attempts": 1, "backoff_ms": [5], "timeout_ms": 3000, "expires_ms": 60_000,
}  # fmt: skip


def test_a_schedule_from_its_creation_to_its_removal(gateway: GatewayProcess) -> None:
    stored = [
        gateway.ask("PUT", ONE, body)
        for body in (NIGHTLY, NIGHTLY, {**NIGHTLY, "when": "30 4 * * *"})
    ]
    shown = gateway.ask("GET", ONE).json
    page = gateway.ask("GET", "/v1/schedules?limit=1").json
    behind = gateway.ask("GET", "/v1/schedules?after=nightly").json

    assert [each.status for each in stored] == [201, 200, 200]
    assert [each.json["stored"] for each in stored] == ["created", "unchanged", "changed"]
    assert {name: shown[name] for name in NIGHTLY} == NIGHTLY | {"when": "30 4 * * *"}
    assert (shown["runs"], shown["is_paused"], shown["last_at_ms"]) == (0, False, None)
    assert shown["next_at_ms"] > shown["created_at_ms"]
    del shown["contents"]
    assert page == {"schedules": [shown], "more": False}
    assert behind == {"schedules": [], "more": False}

    paused = [gateway.ask("POST", f"{ONE}/pause").json for _ in range(2)]
    ran = gateway.ask("POST", f"{ONE}/run").json
    found = gateway.ask("POST", "/v1/queues/of-schedules/poll", {"wait_ms": 0}).json["items"][0]
    assert paused == [{"paused": True}, {"paused": False}]
    assert gateway.ask("GET", ONE).json["next_at_ms"] is None
    assert (found["id"], found["contents"]) == (ran["id"], NIGHTLY["contents"])
    assert (found["timeout_ms"], found["attributes"]["a"]) == (3000, "b")
    assert found["attributes"]["queueber.schedule"] == "nightly"
    resumed = [gateway.ask("POST", f"{ONE}/resume").json for _ in range(2)]
    assert resumed == [{"resumed": True}, {"resumed": False}]

    assert [gateway.ask("DELETE", ONE).status for _ in range(2)] == [204, 404]
    for method, path in (("GET", ONE), ("POST", f"{ONE}/run"), ("POST", f"{ONE}/pause")):
        assert (gateway.ask(method, path).status, gateway.ask(method, path).code) == (
            404,
            "NOT_FOUND",
        )


def test_what_is_wrong_is_told(gateway: GatewayProcess) -> None:
    for change, words in (
        ({"when": "0 25 * * *"}, "when: '25' is no hour"),
        ({"zone": "Mars"}, "zone: 'Mars' is no time zone"),
        ({"missed": "never"}, "missed"),
        ({"attempts": -1}, "attempts"),
        ({"often": 3}, "often"),
    ):
        refused = gateway.ask("PUT", ONE, {**NIGHTLY, **change})
        assert (refused.status, refused.code) == (400, "INVALID_ARGUMENT")
        assert words in refused.json["detail"]
    assert gateway.ask("PUT", "/v1/schedules/a%2Fb", NIGHTLY).status == 400
    assert gateway.ask("GET", ONE).status == 404
