"""Workflows over HTTP: callbacks of batches, and items that wait."""

from tests.support.http import GatewayProcess, to_base64


def test_a_callback_is_stored_shown_and_fires(gateway: GatewayProcess, queue: str) -> None:
    item = {"contents": to_base64(b"x")}
    gateway.ask("POST", f"{queue}/items", {"items": [item], "batch": "b"})
    callback = {"contents": to_base64(b"report"), "priority": 7, "timeout_ms": 3000}
    callback |= {"attempts": 1, "backoff_ms": [5], "expires_ms": 60_000}
    missing = gateway.ask("GET", f"{queue}/batches/b/callback")
    stored = gateway.ask("PUT", f"{queue}/batches/b/callback", callback)
    again = gateway.ask("PUT", f"{queue}/batches/b/callback", callback)
    lease = gateway.ask("POST", f"{queue}/poll", {"wait_ms": 0}).json
    done = {"lease": lease["lease"], "ids": [lease["items"][0]["id"]]}
    gateway.ask("POST", f"{queue}/remove", done)
    found = gateway.ask("POST", f"{queue}/poll", {"wait_ms": 5000}).json["items"][0]
    shown = gateway.ask("GET", f"{queue}/batches/b/callback")

    assert missing.status == 404
    assert (stored.status, stored.json["item"], stored.json["problem"]) == (200, None, None)
    assert again.json == stored.json
    assert found["contents"] == callback["contents"]
    assert found["timeout_ms"] == 3000
    assert found["attributes"]["queueber.done"] == "1"
    assert shown.json == {**stored.json, "item": found["id"]}


def test_items_wait_for_others(gateway: GatewayProcess, queue: str) -> None:
    item = {"contents": to_base64(b"x")}
    [first] = gateway.ask("POST", f"{queue}/items", {"items": [item], "batch": "b"}).json["ids"]
    waits = {"items": [item], "after": [first], "after_batch": "b"}
    [second] = gateway.ask("POST", f"{queue}/items", waits).json["ids"]
    [shown] = gateway.ask("GET", f"{queue}/items?state=delayed").json["items"]
    wrong = gateway.ask("POST", f"{queue}/items", {"items": [item], "after": ["f" * 32]})
    lease = gateway.ask("POST", f"{queue}/poll", {"wait_ms": 0, "items_max": 5}).json

    assert (shown["id"], shown["after"], shown["after_batch"]) == (second, [first], "b")
    assert wrong.status == 404
    assert [each["id"] for each in lease["items"]] == [first]
    gateway.ask("POST", f"{queue}/remove", {"lease": lease["lease"], "ids": [first]})
    later = gateway.ask("POST", f"{queue}/poll", {"wait_ms": 5000}).json
    assert [each["id"] for each in later["items"]] == [second]


def test_batches_are_forgotten(gateway: GatewayProcess, queue: str) -> None:
    item = {"contents": to_base64(b"x")}
    for batch in ("live", "ended", "other"):
        gateway.ask("POST", f"{queue}/items", {"items": [item], "batch": batch})
    lease = gateway.ask("POST", f"{queue}/poll", {"wait_ms": 0, "items_max": 3}).json
    ended = [each["id"] for each in lease["items"] if each["batch"] != "live"]
    gateway.ask("POST", f"{queue}/remove", {"lease": lease["lease"], "ids": ended})

    live = gateway.ask("DELETE", f"{queue}/batches/live")
    gone = [gateway.ask("DELETE", f"{queue}/batches/ended").status for _ in range(2)]
    recent = gateway.ask("POST", f"{queue}/forget-batches", {"unchanged_for_ms": 60_000})
    others = gateway.ask("POST", f"{queue}/forget-batches", {"unchanged_for_ms": 0})

    assert (live.status, live.code) == (412, "FAILED_PRECONDITION")
    assert gone == [204, 404]
    assert (recent.json, others.json) == ({"batches": 0}, {"batches": 1})
    assert gateway.ask("GET", f"{queue}/batches/live").status == 200
