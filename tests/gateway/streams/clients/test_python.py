"""PyPI's `durable-streams` reads and writes streams of this server."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from durable_streams import (
    AsyncDurableStream,
    DurableStream,
    SeqConflictError,
    StreamExistsError,
    StreamNotFoundError,
    stream,
)
from durable_streams import _types as types

from tests.support.stream_server import StreamServer

pytestmark = pytest.mark.slow

JSON = "application/json"


def test_bytes_are_appended_and_read_in_pieces(streams: StreamServer, path: str) -> None:
    url = streams.stream(path)
    with DurableStream.create(
        url, content_type="application/octet-stream", body=b"zero "
    ) as handle:
        first = handle.append(b"one ")
        handle.append(bytes([0, 255, 10, 13]))

        with handle.stream(live=False) as reading:
            assert reading.read_bytes() == b"zero one \0\xff\n\r"
        with handle.stream(offset=first.next_offset, live=False) as reading:
            assert reading.read_bytes() == b"\0\xff\n\r"
            assert (reading.up_to_date, reading.offset) == (True, handle.head().offset)


def test_values_of_json_are_read_as_they_were_appended(streams: StreamServer, path: str) -> None:
    with DurableStream.create(streams.stream(path), content_type=JSON) as handle:
        handle.append({"n": 1})
        with ThreadPoolExecutor(8) as threads:
            ended = [*threads.map(lambda n: handle.append({"n": n}).next_offset, range(2, 42))]
        handle.append([5, 6])

        with handle.stream(live=False) as reading:
            values = reading.read_json()
    assert values[0] == {"n": 1}
    assert values[-1] == [5, 6]
    assert sorted(value["n"] for value in values[1:-1]) == [*range(2, 42)]
    assert len(set(ended)) <= 40


def test_refusals_are_the_errors_that_the_client_has_for_them(
    streams: StreamServer, path: str
) -> None:
    url = streams.stream(path)
    with pytest.raises(StreamNotFoundError):
        DurableStream.connect(url)
    with DurableStream.create(url, content_type="text/plain") as handle:
        with pytest.raises(StreamExistsError):
            DurableStream.create(url, content_type=JSON)
        handle.append("a", seq="0002")
        with pytest.raises(SeqConflictError):
            handle.append("b", seq="0001")
        with handle.stream(live=False) as reading:
            assert reading.read_text() == "a"
        handle.delete()
        with pytest.raises(StreamNotFoundError):
            handle.delete()


@pytest.mark.parametrize("live", ["long-poll", "sse", "auto"])
def test_a_reader_gets_what_comes(streams: StreamServer, path: str, live: types.LiveMode) -> None:
    """`auto` reads what is there, and goes on with long polls; 204 after a poll is no end."""
    url = streams.stream(path)
    with DurableStream.create(url, content_type=JSON) as handle:
        handle.append("before")
        seen = []
        with ThreadPoolExecutor(1) as threads, stream(url, offset="-1", live=live) as reading:
            done = threads.submit(append_later, url, ["first", "second\r\nline"])
            for value in reading.iter_json():
                seen.append(value)
                if len(seen) == 3:
                    break
            done.result()
    assert seen == ["before", "first", "second\r\nline"]


def append_later(url: str, values: list[str]) -> None:
    with DurableStream(url, content_type=JSON) as handle:
        for value in values:
            time.sleep(0.7)  # longer than a long poll of this server
            handle.append(value)


@pytest.mark.parametrize("live", ["long-poll", "sse"])
def test_a_closed_stream_is_read_to_its_end(
    streams: StreamServer, path: str, live: types.LiveMode
) -> None:
    """This build of the client cannot close streams, nor see that one is closed."""
    url = streams.stream(path)
    with DurableStream.create(url, content_type=JSON, body=b"[1,2]") as handle:
        closing = httpx.post(
            url, content=b"3", headers={"content-type": JSON, "stream-closed": "true"}
        )
        with stream(url, offset="-1", live=live) as reading:
            event = next(iter(reading.iter_events(mode="json")))
        with pytest.raises(SeqConflictError):  # 409
            handle.append(4)

    assert (closing.status_code, closing.headers["stream-closed"]) == (204, "true")
    assert event.data == [1, 2, 3]
    assert event.next_offset == closing.headers["stream-next-offset"]
    assert event.up_to_date


def test_it_can_be_awaited(streams: StreamServer, path: str) -> None:
    async def run() -> str:
        handle = await AsyncDurableStream.create(streams.stream(path), content_type="text/plain")
        async with handle:
            await handle.append("one ")
            await handle.append("two")
            async with handle.stream(live=False) as reading:
                return await reading.read_text()

    assert asyncio.run(run()) == "one two"
