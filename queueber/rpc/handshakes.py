"""TLS handshakes: bounded in time and in number, so that silent callers keep nobody out.

A connection counts as one, and has a session that answers, once its handshake is done. At most
`HANDSHAKES_MAX` are under way; further callers wait to be accepted, and handshakes that take longer
than others need are given up for them.
"""

import ssl
from collections.abc import Callable
from typing import Any

import structlog

_log = structlog.get_logger("queueber.rpc")

HANDSHAKES_MAX = 256
"""Each takes an open file."""
HANDSHAKE_SECONDS_MAX = 10.0
HANDSHAKE_SECONDS_CROWDED = 1.0
"""The same while others wait."""
_GOODBYE_SECONDS_MAX = 5.0
"""How long the end of a connection waits for the other side to confirm it."""
_REPORT_SECONDS = 10.0
"""Failures are logged at most so often; the line says how many there were."""


class Handshakes:
    def __init__(self, loop: Any, context: Callable[[], ssl.SSLContext]) -> None:
        """`context` is asked for each handshake, so that a new certificate is used at once."""
        self._loop = loop
        self._context = context
        self._under_way: dict[Any, tuple[float, str]] = {}
        """Tasks, the oldest first, with when each began and whom it is with."""
        self._failures = 0
        self._last_failure: dict[str, str] = {}
        self._is_quiet = False
        """Failures were logged a moment ago."""

    def make_room(self) -> bool:
        """Whether another one may begin. If not, old ones are given up: ask again in a moment."""
        if len(self._under_way) < HANDSHAKES_MAX:
            return True
        too_old = self._loop.time() - HANDSHAKE_SECONDS_CROWDED
        for task, (began_at, _) in self._under_way.items():
            if began_at > too_old:
                break
            task.cancel()
        return False

    def begin(self, make: Callable[[], Any], accepted: Any, caller: str) -> None:
        """Serve the socket with the protocol that `make` makes, once the handshake is done."""
        served = self._loop.connect_accepted_socket(
            make,
            accepted,
            ssl=self._context(),
            ssl_handshake_timeout=HANDSHAKE_SECONDS_MAX,
            ssl_shutdown_timeout=_GOODBYE_SECONDS_MAX,
        )
        task = self._loop.create_task(served)
        self._under_way[task] = (self._loop.time(), caller)
        task.add_done_callback(self._ended)

    def _ended(self, task: Any) -> None:
        _, caller = self._under_way.pop(task)
        if task.cancelled():
            self._failed(caller, "others waited for it")
        elif (error := task.exception()) is not None:
            self._failed(caller, _reason(error))

    def _failed(self, caller: str, reason: str) -> None:
        self._failures += 1
        self._last_failure = {"reason": reason, "caller": caller}
        if not self._is_quiet:
            self._report()

    def _report(self) -> None:
        self._is_quiet = self._failures > 0
        if self._failures:
            _log.warning("handshakes_failed", count=self._failures, **self._last_failure)
            self._failures = 0
            self._loop.call_later(_REPORT_SECONDS, self._report)


def _reason(error: BaseException) -> str:
    match error:
        case ssl.SSLError(reason=str() as reason):
            return reason.lower().replace("_", " ")
        case ConnectionAbortedError():
            return f"it took longer than {HANDSHAKE_SECONDS_MAX:g} s"
        case ConnectionError():
            return "the caller hung up"
    return f"{type(error).__name__}: {error}"
