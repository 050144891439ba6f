"""Gateways and servers are killed between writers that retry and readers that resume.

The writers number their requests (`Producer-Id`, `-Epoch`, `-Seq`) and send one again until it is
answered; the readers go on at the offset that they got last. So every number is read once, in
order, whoever is killed.
"""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx
import pytest
from durable_streams import DurableStreamError, FetchError, stream
from durable_streams import _types as types

from tests.support.stream_server import StreamServer

pytestmark = [pytest.mark.slow, pytest.mark.recovery, pytest.mark.timeout(120)]

COUNT = 120
SECONDS_MAX = 55.0
"""Of a test on a busy machine; on a quiet one it takes about seven."""
KILLS: dict[int, Callable[[StreamServer], None]] = {
    30: StreamServer.kill_gateway,
    70: StreamServer.kill_and_start,
}
"""After so many numbers were written."""
LIVE = ["long-poll", "sse"]

Node = Callable[..., "subprocess.Popen[str]"]


@dataclass
class Progress:
    """How much is written and read."""

    give_up_at: float = field(default_factory=lambda: time.monotonic() + SECONDS_MAX)
    written: int = 0
    read: list[object] = field(default_factory=list)
    interruptions: int = 0

    @property
    def is_over_time(self) -> bool:
        return time.monotonic() > self.give_up_at


def kill_on_the_way(server: StreamServer, progress: Progress) -> None:
    for written, kill in KILLS.items():
        while progress.written < written:
            assert not progress.is_over_time, progress
            time.sleep(0.01)
        kill(server)


# --- Python ---------------------------------------------------------------------------------------


def write(url: str, progress: Progress) -> None:
    """The published build of the client has no producer."""
    with httpx.Client(timeout=10.0) as client:
        for number in range(COUNT):
            post_again(client, url, number, progress, content=json.dumps(number))
            progress.written = number + 1
        post_again(client, url, COUNT, progress, closes=True)


def post_again(
    client: httpx.Client,
    url: str,
    number: int,
    progress: Progress,
    *,
    content: str = "",
    closes: bool = False,
) -> None:
    headers = {
        "producer-id": "numbers", "producer-epoch": "0", "producer-seq": str(number),
        "content-type": "application/json",
    }  # fmt: skip
    if closes:
        headers["stream-closed"] = "true"
    while not progress.is_over_time:
        try:
            answer = client.post(url, content=content, headers=headers)
        except httpx.TransportError:
            time.sleep(0.05)
            continue
        if answer.status_code < 500:
            assert answer.status_code in (200, 204), answer.text
            return
        time.sleep(0.05)
    raise AssertionError(progress)


def read(url: str, live: types.LiveMode, progress: Progress) -> None:
    offset = "-1"
    while len(progress.read) < COUNT and not progress.is_over_time:
        try:
            with stream(url, offset=offset, live=live, timeout=10.0) as reading:
                for event in reading.iter_events(mode="json"):
                    offset = event.next_offset
                    progress.read += event.data
                    if len(progress.read) >= COUNT:
                        break
        except (httpx.TransportError, FetchError, DurableStreamError):
            progress.interruptions += 1
            time.sleep(0.05)


@pytest.mark.parametrize("live", LIVE)
def test_python_readers_lose_nothing_and_get_nothing_twice(
    mortal: StreamServer, path: str, live: types.LiveMode
) -> None:
    url, progress = mortal.stream(path), Progress()
    httpx.put(url, headers={"content-type": "application/json"}).raise_for_status()

    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(write, url, progress), threads.submit(read, url, live, progress)]
        kill_on_the_way(mortal, progress)
        for side in both:
            side.result()

    assert progress.read == [*range(COUNT)]
    assert progress.interruptions >= len(KILLS)
    assert httpx.head(url).headers["stream-closed"] == "true"
    assert httpx.get(url).json() == [*range(COUNT)]


# --- TypeScript -----------------------------------------------------------------------------------


def lines_of(process: "subprocess.Popen[str]") -> Iterator[dict[str, object]]:
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


def note_written(process: "subprocess.Popen[str]", progress: Progress) -> None:
    for line in lines_of(process):
        progress.written = int(str(line.get("written", progress.written)))


def note_read(process: "subprocess.Popen[str]", progress: Progress) -> None:
    for line in lines_of(process):
        items = line.get("items", [])
        assert isinstance(items, list)
        progress.read += items
        progress.interruptions += "interrupted" in line


def kill_all(*processes: "subprocess.Popen[str]") -> None:
    for process in processes:
        process.kill()


@pytest.mark.parametrize("live", LIVE)
def test_typescript_readers_lose_nothing_and_get_nothing_twice(
    mortal: StreamServer, node: Node, path: str, live: str
) -> None:
    url, progress = mortal.stream(path), Progress()
    httpx.put(url, headers={"content-type": "application/json"}).raise_for_status()

    writer, reader = node("write", url, str(COUNT)), node("read", url, live)
    try:
        with ThreadPoolExecutor(2) as threads:
            noted = [
                threads.submit(note_written, writer, progress),
                threads.submit(note_read, reader, progress),
            ]
            end_all = threading.Timer(SECONDS_MAX, kill_all, [writer, reader])
            end_all.start()
            try:
                kill_on_the_way(mortal, progress)
                for side in noted:
                    side.result()
            finally:
                end_all.cancel()
    finally:
        kill_all(writer, reader)

    told = [process.communicate()[1] for process in (writer, reader)]
    assert (writer.returncode, reader.returncode, told) == (0, 0, ["", ""])
    assert progress.read == [*range(COUNT)]
    assert httpx.get(url).json() == [*range(COUNT)]
