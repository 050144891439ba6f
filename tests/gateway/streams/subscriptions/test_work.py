"""Workers of pull-wake subscriptions: claims, acknowledgements, leases, releases."""

from tests.gateway.streams.subscriptions.conftest import Subscriber, code_of, eventually, tails


def test_a_worker_is_told_claims_and_acknowledges(subscriber: Subscriber) -> None:
    assert subscriber.create().status == 201
    path = subscriber.make_stream("a")
    subscriber.append(path, 3)
    (event,) = eventually(subscriber.events, bool)

    claimed = subscriber.claim("one").json
    acked = subscriber.ack(claimed, tails(claimed), done=True)

    assert {**event, "ts": 0} == {
        "type": "wake", "subscription_id": subscriber.id, "stream": path, "generation": 1, "ts": 0,
    }  # fmt: skip
    assert (claimed["generation"], claimed["lease_ttl_ms"]) == (1, 1000)
    (told,) = claimed["streams"]
    assert told["path"] == path
    assert told["link_type"] == "glob"
    assert told["has_pending"] is True
    assert told["acked_offset"][:16] == told["tail_offset"][:16]
    assert (told["acked_offset"][17:], told["tail_offset"][17:]) == ("0" * 16, "3".zfill(16))
    assert (acked.status, acked.json) == (200, {"ok": True, "next_wake": False})
    assert subscriber.links() == {path: ("glob", told["tail_offset"])}
    assert code_of(subscriber.claim()) == (409, "NO_PENDING_WORK")
