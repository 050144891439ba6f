"""Errors as gRPC has them: a status and a sentence."""

from enum import IntEnum

from queueber.errors import QueueberError
from queueber.gateway.problems import Problem


class Status(IntEnum):
    """The statuses of gRPC."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


OWN_STATUSES = {
    "OUTCOME_UNKNOWN": Status.UNKNOWN,
    "LEASE_EXPIRED": Status.FAILED_PRECONDITION,
}
"""Of codes that gRPC has no status of the same name for. `UNKNOWN` is no status that clients repeat
by themselves: a message might be stored twice."""
OUR_FAULT = "the gateway failed; its log says why"


def status_of(error: QueueberError | Problem) -> tuple[Status, str]:
    """The status for an error of the client, the server or the gateway's bounds."""
    text = error.detail if isinstance(error, Problem) else error.sentence
    status = OWN_STATUSES.get(error.code)
    if status is None:
        status = Status.__members__.get(error.code, Status.INTERNAL)
    return status, text
