"""A normal caller that measures, and what a process uses meanwhile."""

import contextlib
import http.client
import os
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

_BODY = b'{"items":[{"contents":"aGVsbG8="}]}'
_HEADERS = {"content-type": "application/json"}
_PAUSE_SECONDS = 0.005
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Caller:
    """Adds an item and polls it, over and over, and measures each request."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._seconds: list[float] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="caller", daemon=True)
        self.failures: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join(30)

    def take_p99_ms(self) -> float:
        """Of the requests since it was last asked."""
        taken, self._seconds = sorted(self._seconds), []
        return taken[int(len(taken) * 0.99)] * 1000 if taken else float("inf")

    def _run(self) -> None:
        with contextlib.closing(self._connect()) as connection:
            while not self._is_over.wait(_PAUSE_SECONDS):
                try:
                    self._ask(connection, "/v1/queues/caller/items", _BODY)
                    self._ask(connection, "/v1/queues/caller/poll", b'{"wait_ms":0}')
                except (OSError, http.client.HTTPException) as error:
                    self.failures.append(f"{type(error).__name__}: {error}")
                    connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(*self._address, timeout=30)

    def _ask(self, connection: http.client.HTTPConnection, path: str, body: bytes) -> None:
        began = time.perf_counter()
        connection.request("POST", path, body, _HEADERS)
        response = connection.getresponse()
        text = response.read()
        self._seconds.append(time.perf_counter() - began)
        if response.status not in (200, 201):
            self.failures.append(f"{response.status} {text[:200]!r}")


class Usage:
    """The memory and the processor time of a process."""

    def __init__(self, process_id: int) -> None:
        self._folder = Path(f"/proc/{process_id}")

    @property
    def megabytes(self) -> float:
        return int((self._folder / "statm").read_text().split()[1]) * _PAGE / 1e6

    @property
    def cpu_seconds(self) -> float:
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


class Peak:
    """The most memory that a process had during a block."""

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.before = self.most = usage.megabytes

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(0.05):
            with contextlib.suppress(OSError):
                self.most = max(self.most, self._usage.megabytes)
