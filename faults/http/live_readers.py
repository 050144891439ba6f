"""Ten thousand readers of one live stream, of which some never read.

They are real sockets in a process of their own. What is appended must reach every one that reads,
soon; those that do not read must cost a bounded amount of memory, and nobody else.
"""

import contextlib
import multiprocessing
import resource
import selectors
import socket
import time
from dataclasses import dataclass
from typing import Any

from faults.http.stream_attacks import ROOT, STREAM, TEXT, request
from faults.http.task import Address
from faults.http.watch import Caller, Peak, Usage
from tests.support.http import GatewayProcess

LIVE = b"hostile/live"
"""A stream of text: its events are as they were appended."""
CONNECTIONS_MAX = 12_000
_SILENT_SHARE = 10
"""One reader in so many does not read. It asks for megabytes, so that it matters."""
_APPEND_SECONDS = 1.0
_MARK = b"the-mark"
_AT_THE_TAIL = b'"upToDate":true'
_CONNECT_SECONDS_MAX = 60.0
_GROWTH_MB_MAX = 900.0
"""What 10,000 connections take, and the bound of unread answers."""
_P99_MS_MAX = 1_000.0
_FILES_SPARE = 200


@dataclass(frozen=True, slots=True)
class Seen:
    """What the readers saw."""

    connected: int
    appends: int
    slowest_seconds: float
    """From an append until the last reader has it."""
    lost: int
    """Readers that read, and were hung up on or did not get all appends."""


def _raise_file_limit() -> int:
    """As many open files as this process may have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def _reader(address: Address, *, is_silent: bool) -> socket.socket:
    opened = socket.socket()
    if is_silent:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.settimeout(30)
    opened.connect(address)
    stream, offset = (STREAM, b"-1") if is_silent else (LIVE, b"now")
    opened.sendall(request(b"GET", ROOT + stream + b"?offset=" + offset + b"&live=sse"))
    return opened


class _Readers:
    """Those that read: how often each has seen the mark."""

    def __init__(self, opened: list[socket.socket]) -> None:
        self._selector = selectors.DefaultSelector()
        self.marks = dict.fromkeys(opened, 0)
        self.gone: set[socket.socket] = set()
        for each in opened:
            each.setblocking(False)
            self._selector.register(each, selectors.EVENT_READ)

    def read_heads(self, give_up_at: float) -> None:
        """Until every reader has been told where it begins: what is appended then is for it."""
        self.read_until(1, give_up_at, _AT_THE_TAIL)
        self.marks = dict.fromkeys(self.marks, 0)

    def read_until(self, marks: int, give_up_at: float, mark: bytes = _MARK) -> None:
        """Until every reader has seen so many marks."""
        left = {each for each, seen in self.marks.items() if seen < marks} - self.gone
        while left and time.monotonic() < give_up_at:
            for key, _ in self._selector.select(0.2):
                reader = key.fileobj
                assert isinstance(reader, socket.socket)
                try:
                    data = reader.recv(65536)
                except OSError:
                    data = b""
                if not data:
                    self._selector.unregister(reader)
                    self.gone.add(reader)
                    left.discard(reader)
                self.marks[reader] += data.count(mark)
                if self.marks[reader] >= marks:
                    left.discard(reader)

    def lost(self, marks: int) -> int:
        return sum(each in self.gone or seen < marks for each, seen in self.marks.items())


def _append(connection: socket.socket) -> None:
    connection.sendall(request(b"POST", ROOT + LIVE, body=_MARK + b" " * 1000, kind=TEXT))
    answer = connection.recv(65536)
    if not answer.startswith(b"HTTP/1.1 204"):
        raise RuntimeError(f"an append was refused: {answer[:200]!r}")


def _follow(result: Any, address: Address, count: int, seconds: float) -> None:
    count = min(count, _raise_file_limit() - _FILES_SPARE)
    with contextlib.ExitStack() as stack:
        silent: list[socket.socket] = []
        reading: list[socket.socket] = []
        for at in range(count):
            is_silent = at % _SILENT_SHARE == 0
            opened = stack.enter_context(contextlib.closing(_reader(address, is_silent=is_silent)))
            (silent if is_silent else reading).append(opened)
        readers = _Readers(reading)
        readers.read_heads(time.monotonic() + _CONNECT_SECONDS_MAX)
        appender = stack.enter_context(
            contextlib.closing(socket.create_connection(address, timeout=30))
        )
        appends, slowest, end_at = 0, 0.0, time.monotonic() + seconds
        while time.monotonic() < end_at:
            began_at = time.monotonic()
            _append(appender)
            appends += 1
            readers.read_until(appends, began_at + 20)
            slowest = max(slowest, time.monotonic() - began_at)
            time.sleep(max(0.0, began_at + _APPEND_SECONDS - time.monotonic()))
        result.send(Seen(count, appends, slowest, readers.lost(appends)))


def live_readers(gateway: GatewayProcess, caller: Caller, count: int, seconds: float) -> bool:
    """Print what so many readers cost; whether that was too much."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    arguments = theirs, gateway.host_port, count, seconds
    process = context.Process(target=_follow, args=arguments, daemon=True)
    time.sleep(1)
    caller.take_p99_ms()
    time.sleep(2)
    quiet_ms, failures = caller.take_p99_ms(), len(caller.failures)
    usage, seen = Usage(gateway.process.pid), None
    with Peak(usage) as peak:
        process.start()
        theirs.close()
        with contextlib.suppress(EOFError):
            seen = ours.recv() if ours.poll(seconds + 180) else None
        harmed_ms = caller.take_p99_ms()
    process.join(10)
    if process.is_alive():
        process.kill()
    wrong = [*caller.failures[failures:][:1]]
    if seen is None:
        wrong.append("the readers did not end")
    elif seen.lost:
        wrong.append(f"{seen.lost} readers that read lost something")
    if (grown := peak.most - peak.before) > _GROWTH_MB_MAX:
        wrong.append(f"grew by {grown:.0f} MB")
    if harmed_ms > _P99_MS_MAX:
        wrong.append("the p99 of others")
    told = "" if seen is None else (
        f"{seen.connected} readers, {seen.appends} appends, the last reader had each within "
        f"{seen.slowest_seconds:.2f} s; "
    )  # fmt: skip
    print(
        f"live readers: {told}memory {peak.before:.0f} to {peak.most:.0f} MB, "
        f"p99 of others {quiet_ms:.1f} to {harmed_ms:.1f} ms: {', '.join(wrong) or 'ok'}",
        flush=True,
    )
    return bool(wrong)
