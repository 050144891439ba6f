"""Where a worker logs its events."""

import sys
from typing import Protocol


class EventLogger(Protocol):
    """A structlog logger, or a pipe to the process that has one."""

    def info(self, event: str, **facts: object) -> object: ...

    def warning(self, event: str, **facts: object) -> object: ...


def make_event_logger() -> EventLogger:
    """The logger of the program; standard error if the program has not configured structlog."""
    import structlog  # it loads much, and a program that only sends items does without

    logger: EventLogger = (
        structlog.get_logger("queueber")
        if structlog.is_configured()
        else structlog.wrap_logger(structlog.PrintLogger(sys.stderr))
    )
    return logger
