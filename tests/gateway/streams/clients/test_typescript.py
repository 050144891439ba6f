"""npm's `@durable-streams/client` reads and writes streams of this server."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.gateway.streams.clients.conftest import SECONDS_MAX
from tests.support.stream_server import StreamServer

pytestmark = pytest.mark.slow

Node = Callable[..., "subprocess.Popen[str]"]


def said(process: "subprocess.Popen[str]") -> Any:
    """What a command printed, which is one line of JSON."""
    try:
        printed, trouble = process.communicate(timeout=SECONDS_MAX)
    finally:
        process.kill()
    assert (process.returncode, trouble) == (0, "")
    return json.loads(printed)


def test_bytes_are_appended_read_closed_and_deleted(
    streams: StreamServer, node: Node, path: str
) -> None:
    assert said(node("bytes", streams.stream(path))) == {
        "read": [*b"one ", 0, 255, 10, 13],
        "contentType": "application/octet-stream",
        "streamClosed": [False, True],
        "isFinalOffset": True,
        "refused": 409,
        "rest": "end",
        "exists": False,
    }


def test_values_of_json_are_read_as_they_were_appended(
    streams: StreamServer, node: Node, path: str
) -> None:
    assert said(node("json", streams.stream(path))) == {
        "values": [{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}, [5, 6]],
        "after": [],
        "upToDate": True,
    }


@pytest.mark.parametrize("live", ["long-poll", "sse"])
def test_a_reader_follows_json_until_the_stream_is_closed(
    streams: StreamServer, node: Node, path: str, live: str
) -> None:
    assert said(node("follow", streams.stream(path), live, "application/json")) == {
        "seen": ["before", "first", "second\r\nline", "last"],
        "streamClosed": True,
    }


@pytest.mark.parametrize(
    ("live", "content_type"),
    [
        ("long-poll", "text/plain"),
        ("long-poll", "application/octet-stream"),
        ("sse", "application/octet-stream"),
    ],
)
def test_a_reader_follows_bytes_until_the_stream_is_closed(
    streams: StreamServer, node: Node, path: str, live: str, content_type: str
) -> None:
    followed = said(node("follow", streams.stream(path), live, content_type))

    assert followed["streamClosed"] is True
    assert followed["seen"] == "beforefirstsecond\r\nlinelast"


def test_an_event_carries_the_lines_of_a_text_and_one_kind_of_line_end(
    streams: StreamServer, node: Node, path: str
) -> None:
    """Server-sent events have no other way: each line is sent apart, and joined with LF."""
    followed = said(node("follow", streams.stream(path), "sse", "text/plain"))

    assert followed["seen"] == "beforefirstsecond\nlinelast"
