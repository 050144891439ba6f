"""What a handler logs says for which item: `job_id`, `attempt` and `queue`."""

import contextlib
import logging
from collections.abc import Iterator
from contextvars import ContextVar

from queueber.worker.handlers.middleware import Middleware
from queueber.worker.handlers.work_item import WorkItem

_handled: ContextVar[tuple[str, int, str]] = ContextVar("queueber_handled", default=("-", 0, "-"))
"""Id, attempt and queue of the item that is handled here."""


class LogContext(Middleware):
    """Binds them for structlog (`merge_contextvars`, which its default configuration has), and for
    standard `logging` where a `JobLogFilter` is installed."""

    def start(self, source: str) -> None:
        self._source = source

    @contextlib.contextmanager
    def around(self, item: WorkItem) -> Iterator[None]:
        from structlog.contextvars import bound_contextvars

        job_id = item.id.hex()
        token = _handled.set((job_id, item.attempt, self._source))
        try:
            with bound_contextvars(job_id=job_id, attempt=item.attempt, queue=self._source):
                yield
        finally:
            _handled.reset(token)


class JobLogFilter(logging.Filter):
    """Gives every record `job_id`, `attempt` and `queue`; outside of a handler "-", 0 and "-".

    Install it on a handler of `logging`, not on a logger: a logger's filters see only its own
    records.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        record.job_id, record.attempt, record.queue = _handled.get()
        return True
