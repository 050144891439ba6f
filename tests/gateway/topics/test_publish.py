"""Publishing over HTTP: JSON, raw bytes, once, on a condition, to many topics."""

from tests.support.http import GatewayProcess, to_base64

HELLO = {"payload": to_base64(b"\x00\xffhello")}


def test_messages_are_read_with_all_that_belongs_to_them(
    gateway: GatewayProcess, topic: str
) -> None:
    message = HELLO | {"key": "kéy", "attributes": {"a": "b"}}

    published = gateway.ask("POST", f"{topic}/messages", {"messages": [message, HELLO]})
    page = gateway.ask("GET", f"{topic}/messages")

    assert published.status == 201
    answer = published.json
    at_ms = answer.pop("published_at_ms")
    (one, two), (first, second) = answer.pop("ids"), answer.pop("sequences")
    assert second == first + 1
    assert answer == {
        "partitions": [0, 0],
        "offsets": [0, 1],
        "duplicates": [],
        "is_repeat": False,
    }
    common = {"partition": 0, "payload": HELLO["payload"], "published_at_ms": at_ms}
    assert page.json == {
        "messages": [
            {"offset": 0, "key": "kéy", "attributes": {"a": "b"}, "id": one, "sequence": first}
            | common,
            {"offset": 1, "key": None, "attributes": {}, "id": two, "sequence": second} | common,
        ],
        "next_offset": 2,
        "first_kept": 0,
        "end_offset": 2,
        "missed": 0,
        "is_closed": False,
    }


def test_raw_bytes_are_one_message_with_its_fields_in_headers(
    gateway: GatewayProcess, topic: str
) -> None:
    headers = {
        "Queueber-Key": "k%C3%A9y",
        "Queueber-Attributes": "a=b&c=d%20e",
        "Queueber-Dedup-Id": "d%201",
        "Queueber-Producer": "p",
        "Queueber-Epoch": "2",
        "Queueber-Sequence": "1",
        "Queueber-Expected-Offset": "0",
        "Queueber-Partition": "0",
        "Queueber-Close": "true",
    }
    accept = {"Accept": "application/octet-stream"}

    published = gateway.ask("POST", f"{topic}/messages", raw=b"\x00raw", headers=headers)
    again = gateway.ask("POST", f"{topic}/messages", raw=b"\x00raw", headers=headers)
    read = gateway.ask("GET", f"{topic}/messages", headers=accept)
    nothing = gateway.ask("GET", f"{topic}/messages?from=1&wait_ms=5000", headers=accept)

    assert (published.status, published.json["offsets"]) == (201, [0])
    assert (again.json["is_repeat"], again.json["ids"]) == (True, published.json["ids"])
    assert (read.status, read.body) == (200, b"\x00raw")
    told = {name: value for name, value in read.headers.items() if name.startswith("queueber-")}
    assert told == {
        "queueber-partition": "0",
        "queueber-offset": "0",
        "queueber-next-offset": "1",
        "queueber-missed": "0",
        "queueber-id": published.json["ids"][0],
        "queueber-sequence": str(published.json["sequences"][0]),
        "queueber-published-at-ms": str(published.json["published_at_ms"]),
        "queueber-key": "k%C3%A9y",
        "queueber-attributes": "a=b&c=d+e",
    }
    assert (nothing.status, nothing.body) == (204, b"")
    assert nothing.headers["queueber-next-offset"] == "1"
    assert nothing.headers["queueber-closed"] == "true"


def test_a_publish_that_is_sent_again_is_not_stored_again(
    gateway: GatewayProcess, topic: str
) -> None:
    numbered = {"messages": [HELLO], "producer": {"id": "p", "epoch": 1, "sequence": 1}}
    gap = numbered | {"producer": {"id": "p", "epoch": 1, "sequence": 3}}
    marked = {"messages": [HELLO | {"dedup_id": "d"}, HELLO]}

    first, again = (gateway.ask("POST", f"{topic}/messages", numbered).json for _ in range(2))
    refused = gateway.ask("POST", f"{topic}/messages", gap)
    one, two = (gateway.ask("POST", f"{topic}/messages", marked).json for _ in range(2))

    assert (first["is_repeat"], again["is_repeat"]) == (False, True)
    assert first["offsets"] == again["offsets"]
    assert (refused.status, refused.code) == (409, "ABORTED")
    assert (refused.json["expected"], refused.json["received"]) == (2, 3)
    assert (one["offsets"], one["duplicates"]) == ([1, 2], [])
    assert (two["offsets"], two["duplicates"]) == ([1, 3], [True, False])


def test_a_publish_may_depend_on_where_the_partition_ends(
    gateway: GatewayProcess, topic: str
) -> None:
    gateway.ask("PUT", topic, {"partitions": 2})
    wanted = {"messages": [HELLO], "partition": 1, "expected_offset": 0}

    taken = gateway.ask("POST", f"{topic}/messages", wanted)
    refused = gateway.ask("POST", f"{topic}/messages", wanted)

    assert (taken.json["partitions"], taken.json["offsets"]) == ([1], [0])
    assert (refused.status, refused.code) == (412, "FAILED_PRECONDITION")
    assert refused.json["tail"] == 1


def test_several_topics_get_their_messages_or_none_does(
    gateway: GatewayProcess, topic: str
) -> None:
    names = [f"many/{topic[-4:]}/{each}".replace("%", "") for each in "ab"]
    both = [{"topic": each, "messages": [HELLO]} for each in names]

    done = gateway.ask("POST", "/v1/publish", {"publications": both})
    stale = [both[0], both[1] | {"expected_offset": 0, "close": True}]
    refused = gateway.ask("POST", "/v1/publish", {"publications": stale})

    assert done.status == 201
    assert [each["offsets"] for each in done.json["published"]] == [[0], [0]]
    assert (refused.status, refused.code) == (412, "FAILED_PRECONDITION")
    for name in names:
        page = gateway.ask("GET", f"/v1/topics/{name.replace('/', '%2F')}/messages").json
        assert (page["end_offset"], page["is_closed"]) == (1, False)
