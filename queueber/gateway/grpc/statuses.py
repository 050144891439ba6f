"""Errors as gRPC has them: a status and a sentence."""

import grpc

from queueber.errors import QueueberError
from queueber.gateway.problems import Problem

OWN_STATUSES = {
    "OUTCOME_UNKNOWN": grpc.StatusCode.UNKNOWN,
    "LEASE_EXPIRED": grpc.StatusCode.FAILED_PRECONDITION,
}
"""Of codes that gRPC has no status of the same name for. `UNKNOWN` is no status that clients repeat
by themselves: a message might be stored twice."""
OUR_FAULT = "the gateway failed; its log says why"


def status_of(error: QueueberError | Problem) -> tuple[grpc.StatusCode, str]:
    """The status for an error of the client, the server or the gateway's bounds."""
    text = error.detail if isinstance(error, Problem) else error.sentence
    status = OWN_STATUSES.get(error.code)
    if status is None:
        status = grpc.StatusCode.__members__.get(error.code, grpc.StatusCode.INTERNAL)
    return status, text
