"""Errors as clients of KalamDB read them: `{"error": ..., "code": ...}`, and its codes."""

import msgspec

from queueber.gateway.problems import Problem

_CODES = {
    "PERMISSION_DENIED": "FORBIDDEN",
    "UNAUTHENTICATED": "UNAUTHORIZED",
    "INTERNAL": "INTERNAL_ERROR",
    "OUT_OF_RANGE": "OFFSET_OUT_OF_RANGE",
}
"""Where KalamDB has another word than the server."""

_STATUSES = {"OUT_OF_RANGE": 400}
"""Where the usual status would say something else here: 416 is about ranges of bytes."""


def kalam_error(problem: Problem) -> tuple[int, bytes]:
    """The status and the body of an error."""
    said = {
        "error": problem.detail,
        "code": _CODES.get(problem.code, problem.code),
        **problem.numbers,
    }
    return _STATUSES.get(problem.code, problem.status), msgspec.json.encode(said)
