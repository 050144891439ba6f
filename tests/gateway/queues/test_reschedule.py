"""Rescheduling over HTTP."""

import pytest

from queueber.limits import DELAY_MS_MAX
from tests.support.http import GatewayProcess

NO_ID = "0" * 32


def test_items_become_ready_later_or_now(gateway: GatewayProcess, queue: str) -> None:
    items = [{"contents": "", "delay_ms": 600_000}, {"contents": ""}]
    delayed, ready = gateway.ask("POST", f"{queue}/items", {"items": items}).json["ids"]

    later = gateway.ask("POST", f"{queue}/reschedule", {"ids": [ready, NO_ID], "delay_ms": 60_000})
    now = gateway.ask("POST", f"{queue}/reschedule", {"ids": [delayed]})

    assert (later.status, later.json) == (200, {"done": [True, False], "items": 1})
    assert (now.status, now.json) == (200, {"done": [True], "items": 1})
    in_states = {
        state: [
            item["id"] for item in gateway.ask("GET", f"{queue}/items?state={state}").json["items"]
        ]
        for state in ("ready", "delayed")
    }
    assert in_states == {"ready": [delayed], "delayed": [ready]}


@pytest.mark.parametrize(
    "body", [{}, {"ids": []}, {"ids": [NO_ID], "delay_ms": DELAY_MS_MAX + 1}, {"ids": ["x"]}]
)
def test_bad_requests_are_refused(gateway: GatewayProcess, queue: str, body: object) -> None:
    refused = gateway.ask("POST", f"{queue}/reschedule", body)

    assert (refused.status, refused.json["code"]) == (400, "INVALID_ARGUMENT")
