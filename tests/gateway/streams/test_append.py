"""Appends: what is refused changes nothing, and conditions are those of the moment."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import queueber
from queueber.testing import ServerProcess
from tests.gateway.streams.conftest import ZERO, Stream

PRODUCER = {"producer_id": "p", "producer_epoch": "1", "producer_seq": "0"}


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"", {}, 400),
        (b"x", {"content_type": ""}, 400),
        (b"x", {"content_type": "text/html"}, 409),
        (b"x", {"producer_id": "p"}, 400),
        (b"x", {**PRODUCER, "producer_seq": "-1"}, 400),
        (b"x", {**PRODUCER, "producer_seq": "3"}, 409),
        (b"x", {**PRODUCER, "producer_id": ""}, 400),
        (b"x", {**PRODUCER, "producer_id": "p" * 257}, 400),
        (b"x", {"stream_seq": "a"}, 409),
        (b"x", {"stream_seq": "s" * 10_000}, 400),
        (b"x", {"if_match": "nonsense"}, 400),
        (b"x", {"if_match": ZERO}, 412),
        (b"x", {"if_match": ZERO, "stream_closed": "true"}, 412),
    ],
)
def test_what_is_refused_changes_nothing(
    stream: Stream, body: bytes, headers: dict[str, str], status: int
) -> None:
    stream.put(b"first")
    assert stream.post(b" second", stream_seq="b").status == 204
    before = stream.state()

    refused = stream.post(body, **headers)

    assert (refused.status, refused.headers["content-type"]) == (
        status,
        "application/problem+json",
    )
    assert refused.json["detail"]
    assert stream.state() == before
    # Neither does the producer's number count, nor the sequence.
    assert stream.post(b"!", **PRODUCER, stream_seq="c").status == 200


@pytest.mark.parametrize("body", [b"{", b"[]", b'["\xff"]'])
def test_wrong_json_is_told_only_of_a_stream_that_takes_it(stream: Stream, body: bytes) -> None:
    headers = {"content_type": "application/json"}

    missing = stream.post(body, **headers).status
    stream.put(b"", **headers)
    present = stream.post(body, **headers, **PRODUCER).status
    stored = stream.post(b"1", **headers, **PRODUCER).status
    stream.post(stream_closed="true")
    closed = stream.post(body, **headers)

    assert (missing, present, stored, closed.status) == (404, 400, 200, 409)
    assert closed.headers["stream-closed"] == "true"
    assert closed.headers["stream-next-offset"] == stream.tail
    assert stream.get().json == [1]


def test_an_append_on_a_condition_fails_with_the_tail(stream: Stream) -> None:
    start = stream.put().headers["stream-next-offset"]

    first = stream.post(b"a", if_match=f'"{start}"')
    second = stream.post(b"b", if_match=f'"{start}"')
    any_ = stream.post(b"c", if_match="*")

    assert (first.status, second.status, any_.status) == (204, 412, 204)
    assert second.headers["stream-next-offset"] == first.headers["stream-next-offset"]
    assert stream.get().body == b"ac"


def test_a_condition_of_a_stream_that_was_created_again_fails(stream: Stream) -> None:
    old = stream.put().headers["stream-next-offset"]
    stream.delete()
    new = stream.put().headers["stream-next-offset"]

    refused = stream.post(b"a", if_match=old)

    assert old != new
    assert (refused.status, refused.headers["stream-next-offset"]) == (412, new)
    assert stream.get().body == b""


def test_of_many_conditional_appends_one_wins_each_time(stream: Stream) -> None:
    stream.put()

    def add(number: int) -> int:
        """Read, then append what follows from it, until nobody else was faster."""
        tries = 0
        while True:
            tries += 1
            read = stream.get()
            offset = read.headers["stream-next-offset"]
            if stream.post(b"%d," % number, if_match=offset).status == 204:
                return tries

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(40)))

    assert sorted(map(int, stream.get().body[:-1].split(b","))) == list(range(40))


def test_appends_of_many_callers_are_whole_and_in_one_order(stream: Stream) -> None:
    stream.put(content_type="application/json")

    def append(number: int) -> str:
        body = json.dumps([[number, part] for part in range(3)]).encode()
        answered = stream.post(body, content_type="application/json")
        assert answered.status == 204
        return answered.headers["stream-next-offset"]

    with ThreadPoolExecutor(8) as threads:
        offsets = list(threads.map(append, range(50)))

    values = stream.get().json
    groups = [values[at : at + 3] for at in range(0, 150, 3)]
    assert all(group == [[group[0][0], part] for part in range(3)] for group in groups)
    assert sorted(group[0][0] for group in groups) == list(range(50))
    assert len(set(offsets)) == 50
    # Each caller was told where its own append ends.
    order = [offset for _, offset in sorted(zip(offsets, offsets, strict=True))]
    ends = {offset: groups[place][0][0] for place, offset in enumerate(order)}
    assert [ends[offset] for offset in offsets] == list(range(50))


def test_a_repeat_of_a_producer_is_stored_once_whatever_it_says(stream: Stream) -> None:
    stream.put()

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda n: stream.post(b"%d" % n, **PRODUCER), range(4)))

    assert sorted(each.status for each in found) == [200, 204, 204, 204]
    assert len(stream.get().body) == 1
    assert {each.headers["producer-seq"] for each in found} == {"0"}


def test_what_is_larger_than_a_message_is_one_append(stream: Stream) -> None:
    stream.put(content_type="image/png")
    large = bytes(range(256)) * 40_000  # 10 MB

    assert stream.post(large, content_type="image/png").status == 204

    body, offset, answers = b"", "-1", 0
    while True:
        read = stream.get(f"?offset={offset}")
        body, offset, answers = body + read.body, read.headers["stream-next-offset"], answers + 1
        if "stream-up-to-date" in read.headers:
            break
    assert body == large
    assert answers > 1


@pytest.mark.parametrize("count", [10_001, 200_000])
def test_too_many_values_are_refused_as_too_large(stream: Stream, count: int) -> None:
    stream.put(content_type="application/json")

    refused = stream.post(b"[" + b",".join([b"1"] * count) + b"]", content_type="application/json")

    assert (refused.status, refused.code) == (413, "RESOURCE_EXHAUSTED")
    assert stream.get().json == []


def test_a_full_stream_asks_to_come_back(stream: Stream) -> None:
    stream.put(b"1")
    settings = {"retention_messages": 2, "refuses_when_full": True}
    topic = "/v1/topics/" + stream.path.replace("/", "%2F")
    assert stream.gateway.ask("PATCH", topic, settings).status == 200

    statuses = [stream.post(b"2").status, stream.post(b"3").status]
    refused = stream.post(b"4")

    assert statuses == [204, 429]
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert stream.get().body == b"12"


def test_closing_may_be_repeated_with_its_sequence(stream: Stream) -> None:
    stream.put(b"a")
    closing = {"stream_closed": "true", "stream_seq": "b"}

    found = [stream.post(body, **closing) for body in (b"", b"", b"x")]

    assert [each.status for each in found] == [204, 204, 409]
    assert [each.headers["stream-closed"] for each in found] == ["true"] * 3
    assert stream.state() == (b"a", "true", stream.tail)


@pytest.mark.parametrize("method", ["put", "post"])
def test_a_compressed_body_is_refused(stream: Stream, method: str) -> None:
    """Readers would get its bytes, and not be told what they are."""
    if method == "post":
        stream.put()

    refused = getattr(stream, method)(b"\x1f\x8b", content_encoding="gzip")

    assert refused.status == 415
    assert stream.head().status == (404 if method == "put" else 200)
    assert getattr(stream, method)(b"x", content_encoding="identity").status in (201, 204)


def test_a_gap_is_told_in_the_numbers_of_the_caller(stream: Stream) -> None:
    stream.put()
    answer = stream.post(b"x", producer_id="p", producer_epoch="0", producer_seq="5")

    assert (answer.status, answer.json["expected"], answer.json["received"]) == (409, 0, 5)
    assert answer.headers["producer-expected-seq"] == "0"
    assert answer.headers["producer-received-seq"] == "5"
    assert "5 of 'p' leaves a gap; 0 comes next" in answer.json["detail"]
    assert stream.get().body == b""


def test_a_topic_without_a_type_takes_bytes_only(stream: Stream, server: ServerProcess) -> None:
    with queueber.connect(server.address) as client:
        client.create_topic(stream.path)

    refused = stream.post(b"x", content_type="text/plain").status
    taken = stream.post(b"y", content_type="application/octet-stream").status

    assert (refused, taken, stream.get().body) == (409, 204, b"y")
