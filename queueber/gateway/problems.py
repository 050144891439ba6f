"""Errors as `application/problem+json` (RFC 9457): the code of the server, and a status for it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

import msgspec

from queueber import errors
from queueber.errors import QueueberError

PROBLEM_TYPE = "application/problem+json"

STATUSES: dict[str, int] = {
    "INVALID_ARGUMENT": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ABORTED": 409,
    "ALREADY_EXISTS": 409,
    "LEASE_EXPIRED": 409,
    "FAILED_PRECONDITION": 412,
    "OUT_OF_RANGE": 416,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "OUTCOME_UNKNOWN": 504,
}
"""The status of each code. A request that is too large itself has 413 instead of 429."""

_ARGUMENT = re.compile(r"^\w+: ")
"""A sentence that begins with an argument is about the request, not about who else uses the
server: it would be refused again."""

RETRY_SECONDS = 1
"""What `Retry-After` says. Clients that all come back at once are slowed down by the bounds."""

_CHALLENGE = 'Bearer realm="queueber", Basic realm="queueber", charset="UTF-8"'


@dataclass(slots=True)
class Problem(Exception):
    """An answer that is an error: of the server, or of HTTP itself."""

    status: int
    code: str
    detail: str
    headers: dict[str, str] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)

    def body(self) -> bytes:
        """The JSON object; numbers that programs need stand beside the five fixed fields."""
        return msgspec.json.encode(
            {
                "type": f"/docs#{self.code}",
                "title": HTTPStatus(self.status).phrase,
                "status": self.status,
                "code": self.code,
                "detail": self.detail,
                **self.numbers,
            }
        )


def problem_of(error: QueueberError) -> Problem:
    """The answer for an error of the client or the server."""
    status, headers = STATUSES.get(error.code, 500), {}
    match error:
        case errors.Unavailable():
            headers = {"retry-after": str(RETRY_SECONDS)}
        case errors.Unauthenticated():
            headers = {"www-authenticate": _CHALLENGE}
        case errors.ResourceExhausted() if _ARGUMENT.match(error.sentence):
            status = 413
        case errors.ResourceExhausted():
            headers = {"retry-after": str(RETRY_SECONDS)}
    return Problem(status, error.code, error.sentence, headers, error.numbers)


def invalid(detail: str) -> Problem:
    """The request is wrong: which argument, what was wrong, the limit."""
    return Problem(400, "INVALID_ARGUMENT", detail)


def too_busy(detail: str) -> Problem:
    """The gateway is at one of its bounds; nothing has happened."""
    return Problem(503, "UNAVAILABLE", detail, {"retry-after": str(RETRY_SECONDS)})


def of_http(status: int, detail: str, **headers: str) -> Problem:
    """What HTTP itself refuses: a method, a media type, a length."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Problem(status, "INVALID_ARGUMENT" if status != 404 else "NOT_FOUND", detail, named)
