"""The audit log: who did what to which queue or topic, and who was refused.

One event for each, to the server's log or as a line of JSON to a file. Refusals may come without
end, so each caller has a rate of them; the next event says how many were left out.
"""

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import structlog

from queueber.auth.buckets import Bucket, Recent
from queueber.clock import Clock
from queueber.errors import QueueberError
from queueber.limits import SECOND_MS

_log = structlog.get_logger("queueber.audit")

_CALLERS_MAX = 1000
_REFUSALS_PER_SECOND = 1
_REFUSALS_AT_ONCE = 20
"""Refusals of one caller that are logged."""

Facts = dict[str, object]


@dataclass(slots=True)
class _Refusals:
    """Of one caller."""

    bucket: Bucket
    left_out: int = 0


class Audit:
    def __init__(self, file: Path | None, clock: Clock) -> None:
        """Raises `QueueberError` if the file cannot be opened."""
        self._file = file
        self._clock = clock
        self._descriptor: int | None = None
        self._refusals = Recent(
            lambda: _Refusals(Bucket(_REFUSALS_PER_SECOND, _REFUSALS_AT_ONCE, clock.now_ms())),
            _CALLERS_MAX,
        )
        self.reopen()

    def reopen(self) -> None:
        """Open the file again, once it was moved away. Keeps the old one if that fails."""
        if self._file is None:
            return
        try:
            opened = os.open(
                self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise QueueberError(
                f"cannot write the audit log {self._file}: {error.strerror}"
            ) from error
        self.close()
        self._descriptor = opened

    def close(self) -> None:
        if self._descriptor is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None

    def act(self, who: Facts, method: str, subject: Facts, outcome: str) -> None:
        """An administrative act was done, or failed with a code."""
        self._write({**who, "method": method, **subject, "outcome": outcome})

    def refused(self, who: Facts, key: str, subject: Facts, error: QueueberError) -> None:
        """A call was refused. `key` is the caller, or the address of one that is not known."""
        refusals, now_ms = self._refusals.get(key), self._clock.now_ms()
        if not refusals.bucket.take(now_ms):
            refusals.left_out += 1
            return
        left_out, refusals.left_out = refusals.left_out, 0
        facts: Facts = {**who, **subject, "outcome": error.code, "reason": error.sentence}
        self._write(facts | ({"left_out": left_out} if left_out else {}))

    def _write(self, facts: Facts) -> None:
        if self._descriptor is None:
            _log.info("audit", **facts)
            return
        at = datetime.fromtimestamp(self._clock.now_ms() / SECOND_MS, UTC)
        line = json.dumps({"at": at.isoformat(timespec="milliseconds"), **facts}) + "\n"
        try:
            os.write(self._descriptor, line.encode())
        except OSError as error:
            # Not lost: the server's log has it.
            _log.error("audit_not_written", error=error.strerror, **facts)
