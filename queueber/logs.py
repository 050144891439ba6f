"""Logging: readable lines on a terminal, otherwise one JSON object a line."""

import logging
import sys
from dataclasses import fields, is_dataclass
from typing import TextIO

import structlog

from queueber.model import IdRuns


def logs_are_json(log_format: str, stream: TextIO = sys.stderr) -> bool:
    """`auto` means JSON unless the stream is a terminal."""
    return log_format == "json" or (log_format == "auto" and not stream.isatty())


def configure_logs(
    level: str, log_format: str, stream: TextIO = sys.stderr, *, for_good: bool = False
) -> None:
    """`for_good` makes every logger keep what it finds when it is first used, which is quicker."""
    shared: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _readable_values,
    ]
    rendering: list[structlog.typing.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
        if logs_are_json(log_format, stream)
        else [
            structlog.dev.ConsoleRenderer(
                colors=stream.isatty(),
                # Where the package rich is installed, the default shows the variables of every
                # function, and with them tokens.
                exception_formatter=structlog.dev.plain_traceback,
            )
        ]
    )
    structlog.configure(
        processors=shared + rendering,
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=for_good,
    )


_IDS_SHOWN_MAX = 20


def _readable_values(
    _logger: structlog.typing.WrappedLogger, _name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    return {key: _readable(value) for key, value in event.items()}


def _readable(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _readable(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, list | tuple | IdRuns):
        shown = [_readable(each) for each in value[:_IDS_SHOWN_MAX]]
        return [*shown, f"and {len(value) - len(shown)} more"] if len(value) > len(shown) else shown
    return value
