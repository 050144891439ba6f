"""Cancelling over HTTP, by ids, a key or a batch."""

import pytest

from tests.support.http import GatewayProcess


def test_items_are_cancelled_by_id_key_and_batch(gateway: GatewayProcess, queue: str) -> None:
    items = [{"contents": "", "key": "k"}, {"contents": ""}]
    ids = gateway.ask("POST", f"{queue}/items", {"items": items}).json["ids"]
    gateway.ask("POST", f"{queue}/items", {"items": [{"contents": ""}] * 3, "batch": "b"})

    by_key = gateway.ask("POST", f"{queue}/cancel", {"key": "k"})
    by_id = gateway.ask("POST", f"{queue}/cancel", {"ids": ids})
    by_batch = gateway.ask("POST", f"{queue}/cancel", {"batch": "b"})

    assert by_key.json == {"done": [], "items": 1}
    assert by_id.json == {"done": [False, True], "items": 1}
    assert by_batch.json == {"done": [], "items": 3}
    assert gateway.ask("GET", f"{queue}/items").json["items"] == []


@pytest.mark.parametrize("body", [{}, {"key": "k", "batch": "b"}])
def test_none_or_several_of_them_are_refused(
    gateway: GatewayProcess, queue: str, body: dict[str, str]
) -> None:
    gateway.ask("POST", f"{queue}/items", {"items": [{"contents": "", "key": "k"}]})

    refused = gateway.ask("POST", f"{queue}/cancel", body)

    assert (refused.status, refused.json["code"]) == (400, "INVALID_ARGUMENT")
    assert "give ids, a key or a batch, and one of them only" in refused.json["detail"]
    assert len(gateway.ask("GET", f"{queue}/items").json["items"]) == 1
