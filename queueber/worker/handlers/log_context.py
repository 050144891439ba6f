"""What a handler logs says for which item: `job_id`, `attempt`, `queue`, and `job` of an app."""

import contextlib
import logging
from collections.abc import Iterator
from contextvars import ContextVar

from queueber.worker.handlers.middleware import Middleware
from queueber.worker.handlers.work_item import WorkItem

_NOTHING = ("-", 0, "-", "-")
_handled: ContextVar[tuple[str, int, str, str]] = ContextVar("queueber_handled", default=_NOTHING)
"""Id, attempt, queue and job of the item that is handled here."""


class LogContext(Middleware):
    """Binds them for structlog (`merge_contextvars`, which its default configuration has), and for
    standard `logging` where a `JobLogFilter` is installed."""

    @contextlib.contextmanager
    def around(self, item: WorkItem) -> Iterator[None]:
        from structlog.contextvars import bound_contextvars

        job_id = item.id.hex()
        token = _handled.set((job_id, item.attempt, item.source, item.job or "-"))
        facts = {"job_id": job_id, "attempt": item.attempt, "queue": item.source}
        if item.job:
            facts["job"] = item.job
        try:
            with bound_contextvars(**facts):
                yield
        finally:
            _handled.reset(token)


class JobLogFilter(logging.Filter):
    """Gives every record `job_id`, `attempt`, `queue` and `job`; outside of a handler "-" and 0.

    Install it on a handler of `logging`, not on a logger: a logger's filters see only its own
    records.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        record.job_id, record.attempt, record.queue, record.job = _handled.get()
        return True
