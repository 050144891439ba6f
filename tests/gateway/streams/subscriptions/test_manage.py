"""Subscriptions themselves: configurations, links by pattern and by name, refusals."""

import pytest

import queueber
from tests.gateway.streams.subscriptions.conftest import (
    JSON,
    Subscriber,
    code_of,
    eventually,
    tails,
)
from tests.support.webhooks import running_receiver

NOWHERE = "0" * 16 + "_" + "0" * 16


def test_a_subscription_is_created_confirmed_shown_and_deleted(subscriber: Subscriber) -> None:
    created = subscriber.create(description="all events")
    confirmed = subscriber.create(description="all events")
    shown = subscriber.ask("GET")

    assert [created.status, confirmed.status, shown.status] == [201, 200, 200]
    assert created.json == confirmed.json == shown.json
    assert {**shown.json, "created_at": ""} == {
        "id": subscriber.id, "subscription_id": subscriber.id, "type": "pull-wake",
        "pattern": f"{subscriber.root}/*", "streams": [], "webhook": None,
        "wake_stream": subscriber.wake_stream, "lease_ttl_ms": 1000, "created_at": "",
        "status": "active", "description": "all events",
    }  # fmt: skip
    assert [subscriber.ask("DELETE").status for _ in range(2)] == [204, 204]
    assert code_of(subscriber.ask("GET")) == (404, "SUBSCRIPTION_NOT_FOUND")


@pytest.mark.parametrize(
    "other",
    [
        {"lease_ttl_ms": 2000}, {"description": "x"}, {"pattern": "other/*"}, {"streams": ["x"]},
        {"wake_stream": "wake-other"}, {"type": "webhook", "webhook": {"url": "https://8.8.8.8/"}},
    ],
)  # fmt: skip
def test_another_configuration_is_refused_and_changes_nothing(
    subscriber: Subscriber, other: dict[str, object]
) -> None:
    before = subscriber.create().json

    assert code_of(subscriber.create(**other)) == (409, "SUBSCRIPTION_ALREADY_EXISTS")
    assert subscriber.ask("GET").json == before


def test_the_order_of_streams_makes_no_difference(subscriber: Subscriber) -> None:
    assert subscriber.create(streams=["x/a", "x/b"]).status == 201
    assert subscriber.create(streams=["/x/b/", "x/a", "x/a"]).status == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "push"}, {"type": None}, {"pattern": None}, {"pattern": "a/b*"},
        {"pattern": "a//b"},
        {"pattern": "a/" * 40 + "b"}, {"pattern": "a b"}, {"pattern": 7}, {"wake_stream": None},
        {"wake_stream": "__ds/keys"}, {"wake_stream": "queue/a/results"}, {"streams": ["a b"]},
        {"streams": ["__ds/subscriptions/x"]}, {"streams": [""]}, {"streams": "a"},
        {"streams": [f"s{n}" for n in range(1001)]}, {"lease_ttl_ms": 999},
        {"lease_ttl_ms": 600_001}, {"lease_ttl_ms": 1000.5}, {"lease_ttl_ms": "1000"},
        {"description": "x" * 1001}, {"type": "webhook"}, {"type": "webhook", "webhook": {}},
        {"type": "webhook", "webhook": {"url": ""}},
    ],
)  # fmt: skip
def test_a_wrong_request_is_refused_and_creates_nothing(
    subscriber: Subscriber, wrong: dict[str, object]
) -> None:
    assert code_of(subscriber.create(**wrong)) == (400, "INVALID_REQUEST")
    assert code_of(subscriber.ask("GET")) == (404, "SUBSCRIPTION_NOT_FOUND")


def test_a_body_that_is_not_json_is_refused(subscriber: Subscriber) -> None:
    path = f"/v1/stream/__ds/subscriptions/{subscriber.id}"

    for raw in (b"{", b"[]", b"\xff", b"[" * 100_000):
        answered = subscriber.gateway.ask("PUT", path, raw=raw)
        assert code_of(answered) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize("id", ["a%2Fb", "a%20b", "%C3%A9", "x" * 201])
def test_a_wrong_id_is_refused(subscriber: Subscriber, id: str) -> None:
    answered = subscriber.gateway.ask("GET", f"/v1/stream/__ds/subscriptions/{id}")

    assert code_of(answered) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1/hook", "https://169.254.169.254/latest", "http://hooks.example/",
            "https://a:@hooks.example/", "ftp://hooks.example/", "http://2130706433/"],
)  # fmt: skip
def test_a_webhook_to_a_place_that_is_not_public_is_refused(
    subscriber: Subscriber, url: str
) -> None:
    assert code_of(subscriber.create(url=url)) == (400, "WEBHOOK_URL_REJECTED")
    assert code_of(subscriber.ask("GET")) == (404, "SUBSCRIPTION_NOT_FOUND")


# --- links ----------------------------------------------------------------------------------------


def test_streams_that_exist_are_linked_at_their_ends(subscriber: Subscriber) -> None:
    one = subscriber.put_stream("a", [1, 2])
    subscriber.put_stream("b/c", [1])
    subscriber.client.create_topic(f"{subscriber.root}/parted", partitions=2)

    subscriber.create()

    ((path, (kind, at)),) = subscriber.links().items()
    assert (path, kind, at[17:]) == (one, "glob", "2".zfill(16))
    assert code_of(subscriber.claim()) == (409, "NO_PENDING_WORK")


@pytest.mark.parametrize(
    ("pattern", "linked"),
    [("{r}/*", ["b"]), ("{r}/**", ["b", "b/c", "b/c/d"]), ("{r}/*/c", ["b/c"]),
     ("{r}/**/d", ["b/c/d"]), ("{r}/b/**", ["b", "b/c", "b/c/d"]),
     ("{r}/*/**", ["b", "b/c", "b/c/d"])],
)  # fmt: skip
def test_streams_that_come_later_are_linked_before_their_first_append(
    subscriber: Subscriber, pattern: str, linked: list[str]
) -> None:
    subscriber.create(pattern=pattern.format(r=subscriber.root))
    for name in ("b", "b/c", "b/c/d"):
        subscriber.put_stream(name, [1])

    wanted = {f"{subscriber.root}/{name}" for name in linked}
    found = eventually(subscriber.links, lambda each: set(each) == wanted)

    assert {(kind, at[17:]) for kind, at in found.values()} == {("glob", "0" * 16)}
    claimed = subscriber.claim_soon()
    assert {each["path"] for each in claimed["streams"] if each["has_pending"]} == wanted


def test_a_stream_of_another_program_is_found_by_and_by(subscriber: Subscriber) -> None:
    subscriber.create()
    path = subscriber.make_stream("elsewhere")
    subscriber.append(path)

    (event,) = eventually(subscriber.events, bool)

    assert event["stream"] == path


def test_a_stream_is_linked_by_name_before_it_exists(subscriber: Subscriber) -> None:
    path = f"{subscriber.root}-named/a"
    subscriber.create(streams=[path])
    assert subscriber.links() == {path: ("explicit", NOWHERE)}

    subscriber.gateway.ask("PUT", f"/v1/stream/{path}", [1], headers=JSON)
    claimed = subscriber.claim_soon()

    (told,) = claimed["streams"]
    assert (told["path"], told["link_type"], told["has_pending"]) == (path, "explicit", True)
    assert subscriber.ack(claimed, tails(claimed), done=True).json["next_wake"] is False


def test_links_are_added_and_dropped_and_both_may_be_repeated(subscriber: Subscriber) -> None:
    subscriber.create(streams=["x/a"])
    for _ in range(2):
        assert subscriber.ask("POST", "/streams", {"streams": ["x/b", "/x/c/"]}).status == 204
        assert set(subscriber.links()) == {"x/a", "x/b", "x/c"}
    for _ in range(2):
        assert subscriber.ask("DELETE", "/streams/x%2Fb").status == 204
        assert subscriber.ask("DELETE", "/streams/x/c").status == 204
        assert set(subscriber.links()) == {"x/a"}
    assert subscriber.ask("DELETE", "/streams/none").status == 204
    assert code_of(subscriber.ask("POST", "/streams", {"streams": ["a b"]}))[0] == 400
    assert code_of(subscriber.ask("POST", "/streams", {}))[0] == 400


def test_a_stream_that_is_named_and_matched_stays_linked_by_the_pattern(
    subscriber: Subscriber,
) -> None:
    path = subscriber.put_stream("a", [1])
    subscriber.create(streams=[path])
    ((_, at),) = subscriber.links().values()
    assert subscriber.links() == {path: ("explicit", at)}

    assert subscriber.ask("DELETE", f"/streams/{path}").status == 204

    assert subscriber.links() == {path: ("glob", at)}


def test_a_stream_that_was_deleted_and_created_again_is_unread(subscriber: Subscriber) -> None:
    subscriber.create()
    path = subscriber.put_stream("a", [1, 2, 3])
    claimed = subscriber.claim_soon()
    subscriber.ack(claimed, tails(claimed), done=True)
    old = claimed["streams"][0]["tail_offset"]
    assert subscriber.gateway.ask("DELETE", f"/v1/stream/{path}").status == 204
    subscriber.put_stream("a", [9])

    again = subscriber.claim_soon()

    (told,) = again["streams"]
    assert (told["acked_offset"][17:], told["tail_offset"][17:]) == ("0" * 16, "1".zfill(16))
    assert told["tail_offset"][:16] != old[:16]
    stale = subscriber.ack(again, [{"stream": path, "offset": old}])
    assert code_of(stale) == (409, "INVALID_OFFSET")


def test_a_fork_begins_at_what_is_its_own(subscriber: Subscriber) -> None:
    subscriber.gateway.ask("PUT", f"/v1/stream/{subscriber.root}-source", [1, 2], headers=JSON)
    subscriber.create()
    path = f"{subscriber.root}/fork"
    forked = {**JSON, "stream-forked-from": f"/v1/stream/{subscriber.root}-source"}
    assert subscriber.gateway.ask("PUT", f"/v1/stream/{path}", headers=forked).status == 201
    sent = subscriber.gateway.ask("POST", f"/v1/stream/{path}", [3], headers=JSON)
    assert sent.status == 204

    (told,) = subscriber.claim_soon()["streams"]

    assert (told["acked_offset"][17:], told["tail_offset"][17:]) == ("2".zfill(16), "3".zfill(16))


def test_records_cannot_be_reached_as_streams(subscriber: Subscriber) -> None:
    subscriber.create()
    path = f"/v1/stream/__ds%2Fsubscriptions%2F{subscriber.id}"

    for method in ("GET", "DELETE", "POST"):
        body = [1] if method == "POST" else None
        assert subscriber.gateway.ask(method, path, body, headers=JSON).status in (400, 404)
    assert subscriber.gateway.ask("GET", "/v1/stream/__ds/keys").status == 404
    assert subscriber.ask("GET").status == 200


def test_a_record_that_somebody_has_spoilt_can_be_deleted(subscriber: Subscriber) -> None:
    subscriber.create()
    subscriber.client.topic(f"__ds/subscriptions/{subscriber.id}").publish(b"{}")

    assert subscriber.ask("GET").status == 500
    assert subscriber.ask("DELETE").status == 204
    assert subscriber.create().status == 201


def test_a_webhook_names_its_key(subscriber: Subscriber) -> None:
    with running_receiver() as receiver:
        webhook = subscriber.create(url=receiver.url).json["webhook"]
    keys = subscriber.gateway.ask("GET", "/v1/stream/__ds/jwks.json")

    address = subscriber.gateway.address
    kid = webhook["signing"]["kid"]
    assert webhook == {
        "url": receiver.url,
        "signing": {
            "kid": kid, "alg": "ed25519",
            "jwks_url": f"http://{address}/v1/stream/__ds/jwks.json",
        },
    }  # fmt: skip
    assert keys.headers["content-type"] == "application/jwk-set+json"
    assert keys.headers["cache-control"] == "public, max-age=300"
    (key,) = keys.json["keys"]
    assert {**key, "x": ""} == {
        "kty": "OKP", "crv": "Ed25519", "kid": kid, "use": "sig", "alg": "EdDSA", "x": "",
    }  # fmt: skip
    assert kid.startswith("ds_")


def test_the_subscription_stays_when_its_creator_is_gone(
    subscriber: Subscriber, client: queueber.Client
) -> None:
    """All that is kept is one message."""
    subscriber.create()
    for _ in range(3):
        subscriber.ask("POST", "/streams", {"streams": ["x/a"]})

    page = client.topic(f"__ds/subscriptions/{subscriber.id}").read(start=0, moves=True)

    assert len(page) == 1
