"""Items over HTTP: add, poll, peek."""

import pytest

from queueber.testing import ServerProcess
from tests.support.http import GatewayProcess, to_base64


def test_items_that_were_added_are_polled_with_all_their_fields(
    gateway: GatewayProcess, queue: str
) -> None:
    item = {
        "contents": to_base64(b"\x00\xffhello"),
        "key": "kéy",
        "attributes": {"a": "b"},
        "priority": 7,
    }

    added = gateway.ask("POST", f"{queue}/items", {"items": [item], "batch": "b1"})
    polled = gateway.ask("POST", f"{queue}/poll", {"lease_ms": 5000, "wait_ms": 0})

    assert added.status == 201
    [item_id] = added.json["ids"]
    assert added.json == {"ids": [item_id], "duplicates": [], "is_repeat": False}
    assert polled.status == 200
    [found] = polled.json["items"]
    assert found.pop("added_at_ms") > 0
    assert found == {
        "id": item_id,
        "contents": item["contents"],
        "attempt": 1,
        "deliveries": 1,
        "key": "kéy",
        "batch": "b1",
        "attributes": {"a": "b"},
        "timeout_ms": None,
    }
    assert len(polled.json["lease"]) == 32


def test_raw_bytes_are_one_item_with_its_fields_in_headers(
    gateway: GatewayProcess, queue: str
) -> None:
    headers = {"Queueber-Key": "k%C3%A9y", "Queueber-Attributes": "a=b&c=d%20e"}

    added = gateway.ask("POST", f"{queue}/items", raw=b"\x00raw", headers=headers)
    shown = gateway.ask("GET", f"{queue}/items")
    polled = gateway.ask(
        "POST", f"{queue}/poll", {"wait_ms": 0}, headers={"Accept": "application/octet-stream"}
    )
    nothing = gateway.ask(
        "POST", f"{queue}/poll", {"wait_ms": 0}, headers={"Accept": "application/octet-stream"}
    )

    [item_id] = added.json["ids"]
    assert shown.json["items"][0]["attributes"] == {"a": "b", "c": "d e"}
    assert (polled.status, polled.body) == (200, b"\x00raw")
    assert polled.headers["queueber-id"] == item_id
    assert polled.headers["queueber-key"] == "k%C3%A9y"
    assert len(polled.headers["queueber-lease"]) == 32
    assert (nothing.status, nothing.body) == (204, b"")


def test_an_add_that_is_sent_again_is_not_stored_again(gateway: GatewayProcess, queue: str) -> None:
    numbered = {
        "items": [{"contents": to_base64(b"x")}],
        "producer": {"id": "p", "epoch": 1, "sequence": 1},
    }
    keyed = {"items": [{"contents": to_base64(b"y"), "key": "k"}]}

    first, again = (gateway.ask("POST", f"{queue}/items", numbered).json for _ in range(2))
    one, two = (gateway.ask("POST", f"{queue}/items", keyed).json for _ in range(2))

    assert (first["is_repeat"], again["is_repeat"]) == (False, True)
    assert first["ids"] == again["ids"]
    assert two == {"ids": one["ids"], "duplicates": [True], "is_repeat": False}
    assert gateway.ask("GET", queue).json["ready"] == 2


def test_a_wrong_item_is_refused_and_nothing_is_stored(
    gateway: GatewayProcess, server: ServerProcess, queue: str
) -> None:
    good = {"contents": to_base64(b"x")}

    refused = gateway.ask("POST", f"{queue}/items", {"items": [good, {"contents": "?"}]})

    assert refused.status == 400
    assert refused.code == "INVALID_ARGUMENT"
    assert refused.json["detail"].startswith("body: items[1].contents: ")
    assert gateway.ask("GET", queue).status == 404


def test_items_have_what_is_their_own(gateway: GatewayProcess, queue: str) -> None:
    own = {"attempts": 1, "backoff_ms": [5], "timeout_ms": 1500, "expires_ms": 60_000}
    items = [{"contents": to_base64(b"x"), **own}, {"contents": to_base64(b"y")}]

    added = gateway.ask("POST", f"{queue}/items", {"items": items})
    polled = gateway.ask("POST", f"{queue}/poll", {"items_max": 2, "wait_ms": 0}).json
    failed = {"lease": polled["lease"], "ids": [each["id"] for each in polled["items"]]}
    outcome = gateway.ask("POST", f"{queue}/fail", failed)

    assert added.status == 201
    assert [each["timeout_ms"] for each in polled["items"]] == [1500, None]
    assert outcome.json["outcomes"] == ["died", "retried"]


def test_raw_bytes_have_what_is_their_own_in_headers(gateway: GatewayProcess, queue: str) -> None:
    headers = {"Queueber-Timeout-Ms": "1500", "Queueber-Attempts": "1"}
    gateway.ask("POST", f"{queue}/items", raw=b"raw", headers=headers)

    polled = gateway.ask(
        "POST", f"{queue}/poll", {"wait_ms": 0}, headers={"Accept": "application/octet-stream"}
    )

    assert polled.headers["queueber-timeout-ms"] == "1500"


def test_peek_tells_what_items_have_of_their_own(gateway: GatewayProcess, queue: str) -> None:
    own = {"attempts": 0, "backoff_ms": [5, 70], "timeout_ms": 1500, "expires_ms": 60_000}
    items = [{"contents": to_base64(b"x"), **own}, {"contents": to_base64(b"y")}]
    ids = gateway.ask("POST", f"{queue}/items", {"items": items}).json["ids"]

    with_some, without = gateway.ask("GET", f"{queue}/items").json["items"]
    found = gateway.ask("GET", f"{queue}/items/{ids[0]}").json["item"]

    assert found == with_some
    assert (with_some["attempts_max"], with_some["backoff_ms"]) == (0, [5, 70])
    assert with_some["timeout_ms"] == 1500
    assert with_some["expires_at_ms"] == with_some["added_at_ms"] + 60_000
    assert (without["attempts_max"], without["backoff_ms"]) == (None, [])
    assert (without["timeout_ms"], without["expires_at_ms"]) == (None, None)


def test_raw_bytes_have_backoff_and_what_they_wait_for_in_headers(
    gateway: GatewayProcess, queue: str
) -> None:
    first, second = [
        gateway.ask(
            "POST", f"{queue}/items", raw=b"first", headers={"Queueber-Batch": "b%C3%A9"}
        ).json["ids"][0]
        for _ in range(2)
    ]
    headers = {
        "Queueber-Backoff-Ms": "5, 70,90",
        "Queueber-After": f"{first},{second}",
        "Queueber-After-Batch": "b%C3%A9",
    }

    added = gateway.ask("POST", f"{queue}/items", raw=b"waits", headers=headers)

    [shown] = gateway.ask("GET", f"{queue}/items?state=delayed").json["items"]
    assert [shown["id"]] == added.json["ids"]
    assert shown["backoff_ms"] == [5, 70, 90]
    assert (shown["after"], shown["after_batch"]) == ([first, second], "bé")


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"Queueber-Backoff-Ms": "5,x"}, "headers: backoff_ms: "),
        ({"Queueber-Backoff-Ms": "9" * 15}, "headers: backoff_ms: "),
        ({"Queueber-Backoff-Ms": ",".join("1" * 101)}, "headers: backoff_ms: "),
        ({"Queueber-After": "12"}, "headers: after: "),
        ({"Queueber-After": ",".join(["0" * 32] * 101)}, "headers: after: "),
        ({"Queueber-After-Batch": "%ff"}, "headers: text is percent-encoded UTF-8"),
    ],
)
def test_wrong_headers_of_raw_bytes_are_refused_and_nothing_is_stored(
    gateway: GatewayProcess, queue: str, headers: dict[str, str], told: str
) -> None:
    refused = gateway.ask("POST", f"{queue}/items", raw=b"raw", headers=headers)

    assert (refused.status, refused.code) == (400, "INVALID_ARGUMENT")
    assert refused.json["detail"].startswith(told)
    assert gateway.ask("GET", queue).status == 404
