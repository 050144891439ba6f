"""Live readers: everybody gets everything once, in order, whoever else reads."""

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.gateway.streams.conftest import Stream

SECONDS_MAX = 20.0
Event = tuple[str, str]


class Reader:
    """A connection that reads server-sent events."""

    def __init__(self, stream: Stream, offset: str = "-1", **headers: str) -> None:
        self._connection = stream.gateway.connection(SECONDS_MAX)
        path = f"/v1/stream/{stream.path}?offset={offset}&live=sse"
        self._connection.request("GET", path, headers=headers)
        self.response: http.client.HTTPResponse = self._connection.getresponse()

    def events(self) -> Iterator[Event]:
        kind, data = "", list[str]()
        for raw in self.response:
            line = raw.decode().rstrip("\n")
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("data:"):
                data.append(line.removeprefix("data:"))
            elif not line and kind:
                yield kind, "\n".join(data)
                kind, data = "", []

    def until(self, is_last: Callable[[Event], bool]) -> list[Event]:
        found = []
        for event in self.events():
            found.append(event)
            if is_last(event):
                break
        return found

    def close(self) -> None:
        self._connection.close()


def events_of(stream: Stream, offset: str = "-1") -> list[Event]:
    """All events, up to the one that says that nothing follows."""
    with contextlib.closing(Reader(stream, offset)) as reader:
        return reader.until(is_closed)


def is_closed(event: Event) -> bool:
    return event[0] == "control" and "streamClosed" in json.loads(event[1])


def values_of(events: list[Event]) -> list[object]:
    return [value for kind, data in events if kind == "data" for value in json.loads(data)]


@pytest.fixture
def numbers(stream: Stream) -> Stream:
    stream.put(content_type="application/json")
    return stream


def append(stream: Stream, value: object, **headers: str) -> None:
    answered = stream.post(json.dumps(value).encode(), content_type="application/json", **headers)
    assert answered.status == 204


def test_readers_that_come_at_any_time_get_everything_once(numbers: Stream) -> None:
    def follow(delay: float) -> list[Event]:
        time.sleep(delay)
        return events_of(numbers)

    with ThreadPoolExecutor(20) as threads:
        reading = [threads.submit(follow, 0.02 * at) for at in range(20)]
        for value in range(100):
            append(numbers, value)
        append(numbers, 100, stream_closed="true")
        found = [each.result(SECONDS_MAX) for each in reading]

    for events in found:
        assert values_of(events) == list(range(101))
        kinds = [kind for kind, _ in events]
        # Never two of data in a row.
        assert "data data" not in " ".join(kinds)
        assert kinds[-1] == "control"
        assert json.loads(events[-1][1])["streamNextOffset"] == numbers.tail


def test_a_reader_goes_on_where_its_last_connection_ended(numbers: Stream) -> None:
    found: list[object] = []
    offset = "-1"

    def write() -> None:
        for value in range(60):
            append(numbers, value)

    writing = threading.Thread(target=write)
    writing.start()
    while len(found) < 60:
        with contextlib.closing(Reader(numbers, offset)) as reader:
            for kind, data in reader.events():
                if kind == "data":
                    found += json.loads(data)
                else:
                    offset = json.loads(data)["streamNextOffset"]
                    if len(found) % 7 == 0 or len(found) >= 60:
                        break
    writing.join(SECONDS_MAX)

    assert found == list(range(60))


def test_long_polls_of_many_readers_get_what_comes(numbers: Stream) -> None:
    tail = numbers.tail
    query = f"?offset={tail}&live=long-poll"

    with ThreadPoolExecutor(16) as threads:
        reading = [threads.submit(numbers.get, query) for _ in range(16)]
        time.sleep(0.1)
        append(numbers, "x")
        found = [each.result(SECONDS_MAX) for each in reading]

    assert [(each.status, each.body) for each in found] == [(200, b'["x"]')] * 16
    assert {each.headers["stream-next-offset"] for each in found} == {numbers.tail}


def test_an_append_that_closes_reaches_readers_at_the_tail(
    new_stream: Callable[[], Stream],
) -> None:
    def race(at: int) -> tuple[bytes, list[Event]]:
        stream = new_stream()
        stream.put(content_type="application/json")
        tail = stream.tail
        with ThreadPoolExecutor(2) as threads:
            polling = threads.submit(stream.get, f"?offset={tail}&live=long-poll")
            following = threads.submit(events_of, stream, tail)
            time.sleep(0.005 * at)
            append(stream, at, stream_closed="true")
            polled = polling.result(SECONDS_MAX)
            assert polled.headers["stream-closed"] == "true"
            return polled.body, following.result(SECONDS_MAX)

    for at in range(12):
        polled, events = race(at)
        assert polled == b"[%d]" % at
        assert values_of(events) == [at]
        assert "streamCursor" not in json.loads(events[-1][1])


def test_readers_of_a_stream_that_is_deleted_are_let_go(numbers: Stream) -> None:
    reader = Reader(numbers, numbers.tail)
    with ThreadPoolExecutor(1) as threads:
        polling = threads.submit(numbers.get, f"?offset={numbers.tail}&live=long-poll")
        time.sleep(0.05)
        numbers.delete()
        ended = list(reader.events())
        reader.close()
        polled = polling.result(SECONDS_MAX)

    assert {kind for kind, _ in ended} == {"control"}
    assert polled.status in (404, 204)
    assert numbers.get(f"?offset={'0' * 16}_{'0' * 16}&live=sse").status == 404


def test_other_types_than_text_are_base64(stream: Stream) -> None:
    stream.put(b"\x00\xff\n", content_type="image/png", stream_closed="true")

    with contextlib.closing(Reader(stream)) as reader:
        assert reader.response.headers["stream-sse-data-encoding"] == "base64"
        assert reader.until(is_closed)[0] == ("data", "AP8K")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_a_text_cannot_forge_an_event(stream: Stream, end: str) -> None:
    forged = f"a{end}{end}event: control{end}data:{{}}{end}{end}b"
    stream.put(forged.encode(), stream_closed="true")

    events = events_of(stream)

    assert [kind for kind, _ in events] == ["data", "control"]
    assert events[0][1] == forged.replace(end, "\n")


def test_a_reader_without_news_is_kept_alive_with_the_same_offset(stream: Stream) -> None:
    stream.put(b"a")
    reader = Reader(stream, stream.tail)
    assert "content-length" not in reader.response.headers
    assert reader.response.headers["content-type"] == "text/event-stream"
    assert reader.response.headers["cache-control"] == "no-cache"

    events = [event for event, _ in zip(reader.events(), range(3), strict=False)]
    reader.close()

    assert {kind for kind, _ in events} == {"control"}
    assert {json.loads(data)["streamNextOffset"] for _, data in events} == {stream.tail}
    assert all(json.loads(data)["upToDate"] for _, data in events)


def test_a_reader_does_not_go_on_in_another_stream_of_the_same_path(stream: Stream) -> None:
    stream.put()
    for _ in range(12):
        stream.post(b"a" * 250_000)
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.settimeout(20)
        reader.connect(stream.gateway.host_port)
        asked = f"GET /v1/stream/{stream.path}?offset=-1&live=sse HTTP/1.1\r\n"
        reader.sendall(f"{asked}Host: {stream.gateway.address}\r\n\r\n".encode())
        received = reader.recv(4096)
        stream.delete()
        stream.put()
        for _ in range(13):
            stream.post(b"b" * 250_000)
        while not received.endswith(b"0\r\n\r\n"):
            received += reader.recv(1 << 20)

    assert b"a" * 1000 in received
    assert b"b" * 1000 not in received
