"""One item over HTTP, by its id or key."""

from urllib.parse import quote

from tests.support.http import GatewayProcess, to_base64


def test_an_item_is_found_by_id_and_key_with_its_history(
    gateway: GatewayProcess, queue: str
) -> None:
    item = {"contents": to_base64(b"work"), "key": "order/17"}
    [item_id] = gateway.ask("POST", f"{queue}/items", {"items": [item]}).json["ids"]
    lease = gateway.ask("POST", f"{queue}/poll", {"wait_ms": 0}).json["lease"]
    gateway.ask("POST", f"{queue}/fail", {"lease": lease, "ids": [item_id], "error": "no route"})

    by_id = gateway.ask("GET", f"{queue}/items/{item_id}")
    by_key = gateway.ask("GET", f"{queue}/keys/{quote('order/17', safe='')}")

    assert by_id.status == by_key.status == 200
    assert by_id.json == by_key.json
    found = by_id.json
    assert (found["id"], found["state"], found["lease"], found["result"]) == (
        item_id, "delayed", None, None,
    )  # fmt: skip
    assert (found["item"]["key"], found["item"]["deliveries"]) == ("order/17", 1)
    [attempt] = found["attempts"]
    assert (attempt["end"], attempt["error"]) == ("failed", "no route")
    assert attempt["at_ms"] > found["added_at_ms"] > 0


def test_an_item_that_is_leased_or_done_is_found_with_its_lease_or_result(
    gateway: GatewayProcess, queue: str
) -> None:
    item = {"contents": to_base64(b"work")}
    [item_id] = gateway.ask("POST", f"{queue}/items", {"items": [item]}).json["ids"]
    lease = gateway.ask("POST", f"{queue}/poll", {"wait_ms": 0}).json["lease"]
    leased = gateway.ask("GET", f"{queue}/items/{item_id}").json
    body = {"lease": lease, "items": [{"id": item_id, "result": to_base64(b"done")}]}
    completed = gateway.ask("POST", f"{queue}/complete", body)
    done = gateway.ask("GET", f"{queue}/items/{item_id}").json

    assert (leased["state"], leased["lease"]["lease"]) == ("leased", lease)
    assert completed.status == 200
    assert (done["state"], done["item"]) == ("done", None)
    assert done["result"]["result"] == to_base64(b"done")


def test_an_item_that_there_is_not_is_not_found(gateway: GatewayProcess, queue: str) -> None:
    gateway.ask("POST", f"{queue}/items", {"items": [{"contents": ""}]})

    by_id = gateway.ask("GET", f"{queue}/items/{'0' * 32}")
    by_key = gateway.ask("GET", f"{queue}/keys/k")
    wrong = gateway.ask("GET", f"{queue}/items/12")

    assert (by_id.status, by_id.json["code"]) == (404, "NOT_FOUND")
    assert (by_key.status, by_key.json["code"]) == (404, "NOT_FOUND")
    assert (wrong.status, wrong.json["code"]) == (400, "INVALID_ARGUMENT")


def test_items_are_looked_at_with_a_condition(gateway: GatewayProcess, queue: str) -> None:
    items = [{"contents": "", "key": "k1"}, {"contents": "", "key": "k2"}]
    ids = gateway.ask("POST", f"{queue}/items", {"items": items}).json["ids"]

    by_key, unknown = quote("item.key = 'k2'"), quote("item.nothing = 1")
    found = gateway.ask("GET", f"{queue}/items?where={by_key}")
    wrong = gateway.ask("GET", f"{queue}/items?where={unknown}")

    assert [each["id"] for each in found.json["items"]] == ids[1:]
    assert (wrong.status, wrong.json["code"]) == (400, "INVALID_ARGUMENT")
