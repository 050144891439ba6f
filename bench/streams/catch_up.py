"""Readers that read a stream from its start to its end, over and over, each on its own thread."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from io import BufferedReader
from typing import TypeAlias

from bench.peers.order import Tally
from bench.streams.requests import MIB, connected, request, stream_path

_START = "-1"
_BUFFER_BYTES = MIB

Answers: TypeAlias = "BufferedReader[socket.SocketIO]"


def run_readers(port: int, stream: str, readers: int, seconds: float, tally: Tally) -> None:
    """Counts bytes of bodies. The last pass of each reader is counted as far as it has come."""
    tally.started_ns = time.perf_counter_ns()
    with ThreadPoolExecutor(readers) as pool:
        counts = list(pool.map(lambda _: _read(port, stream, seconds, tally), range(readers)))
    tally.ended_ns = time.perf_counter_ns()
    tally.items = sum(counts)


def read_once(port: int, stream: str) -> tuple[int, int]:
    """One pass: how many bytes, in how many answers."""
    return _passes(port, stream, 0.0, Tally())


def _read(port: int, stream: str, seconds: float, tally: Tally) -> int:
    return _passes(port, stream, seconds, tally)[0]


def _passes(port: int, stream: str, seconds: float, tally: Tally) -> tuple[int, int]:
    """Passes until the time is over; at least one, which is whole if `seconds` is 0."""
    view = memoryview(bytearray(_BUFFER_BYTES))
    done = answers = 0
    offset = _START
    with connected(port) as opened, _answers(opened) as answer:
        while True:
            opened.sendall(request("GET", f"{stream_path(stream)}?offset={offset}"))
            headers = _read_head(answer)
            done += _skip_body(answer, headers, view)
            answers += 1
            offset = headers[b"stream-next-offset"].decode()
            is_end = headers.get(b"stream-up-to-date") == b"true"
            if is_end:
                offset = _START
            if tally.is_over(seconds) if seconds else is_end:
                return done, answers


def _answers(opened: socket.socket) -> "Answers":
    return BufferedReader(socket.SocketIO(opened, "r"), _BUFFER_BYTES // 4)


def _read_head(answer: "Answers") -> dict[bytes, bytes]:
    status = answer.readline()
    if not status.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"refused: {status!r} {answer.read(500)!r}")
    headers = {}
    while (line := answer.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip()
    return headers


def _skip_body(answer: "Answers", headers: dict[bytes, bytes], view: memoryview) -> int:
    if b"content-length" in headers:
        length = int(headers[b"content-length"])
        _skip(answer, length, view)
        return length
    total = 0
    while length := int(answer.readline(), 16):
        _skip(answer, length, view)
        answer.readline()
        total += length
    answer.readline()
    return total


def _skip(answer: "Answers", length: int, view: memoryview) -> None:
    while length:
        got = answer.readinto(view[:length])
        if not got:
            raise RuntimeError("hung up within a body")
        length -= got
