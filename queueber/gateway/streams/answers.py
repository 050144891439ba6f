"""Answers about streams: their headers, and the statuses of what the server refuses."""

from queueber.errors import (
    Aborted,
    AlreadyExists,
    FailedPrecondition,
    NotFound,
    OutOfRange,
    QueueberError,
)
from queueber.gateway.origins import Headers
from queueber.gateway.problems import Problem, problem_of
from queueber.gateway.routes import PlainAnswer
from queueber.gateway.streams.caching import NO_STORE
from queueber.gateway.streams.tokens import token

NOSNIFF = (b"x-content-type-options", b"nosniff")
SANDBOX = (b"content-security-policy", b"sandbox; default-src 'none'")
"""What somebody appended is no page of the gateway, though a browser shows it under its address."""
CLOSED = (b"stream-closed", b"true")
UP_TO_DATE = (b"stream-up-to-date", b"true")


def next_offset(origin: int, offset: int) -> tuple[bytes, bytes]:
    return (b"stream-next-offset", token(origin, offset))


def content_length(body: bytes) -> tuple[bytes, bytes]:
    return (b"content-length", b"%d" % len(body))


def done(status: int, headers: Headers) -> PlainAnswer:
    """An answer without a body, about what changed."""
    if status not in (204, 304):
        headers = [*headers, content_length(b"")]
    return PlainAnswer(status, [NOSNIFF, (b"cache-control", NO_STORE), *headers])


def problem_of_stream(error: QueueberError) -> Problem:
    """What the server refused, with the status that the protocol of streams has for it."""
    problem = problem_of(error)
    numbers = error.numbers
    match error:
        case NotFound() if "forks" in numbers:
            problem.status = 410
        case FailedPrecondition() if {"closed", "content_type", "text_sequence"} & set(numbers):
            problem.status = 409
        case OutOfRange():
            is_deleted = "first" in numbers and numbers.get("first", 0) > numbers.get("offset", -1)
            problem.status = 410 if is_deleted else 400
        case Aborted() | AlreadyExists():
            problem.status = 409
    return problem


def with_headers(problem: Problem, *headers: tuple[bytes, bytes]) -> Problem:
    for name, value in headers:
        problem.headers[name.decode()] = value.decode("latin-1")
    return problem
