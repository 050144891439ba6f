"""Errors, named by who must act.

A `QueueberError` crosses the wire as its code, a colon and a sentence; `from_wire` turns that back
into the same class. `InvariantViolation` is a bug of ours: no handler answers it, the server stops.
"""

import re
from typing import ClassVar


class QueueberError(Exception):
    """Base of every error that a caller may see."""

    code: ClassVar[str] = "INTERNAL"
    retryable: ClassVar[bool] = False
    """True when the same call may be sent again later: nothing happened."""


class InvalidArgument(QueueberError):
    """A field of the request is wrong; the caller changes it."""

    code = "INVALID_ARGUMENT"


class NotFound(QueueberError):
    """The named queue does not exist."""

    code = "NOT_FOUND"


class LeaseExpired(QueueberError):
    """The lease ran out, or was never given."""

    code = "LEASE_EXPIRED"


class ResourceExhausted(QueueberError):
    """A limit was reached: of a size, a queue's depth, or the server's."""

    code = "RESOURCE_EXHAUSTED"


class Unavailable(QueueberError):
    """The server cannot do it now; nothing happened, and the call may be sent again."""

    code = "UNAVAILABLE"
    retryable = True


class Unauthenticated(QueueberError):
    """The caller has not said who it is."""

    code = "UNAUTHENTICATED"


class PermissionDenied(QueueberError):
    """The caller may not do this."""

    code = "PERMISSION_DENIED"


class Aborted(QueueberError):
    """The call conflicts with what is there."""

    code = "ABORTED"


class AlreadyExists(QueueberError):
    """A queue of that name exists with other settings."""

    code = "ALREADY_EXISTS"


class Internal(QueueberError):
    """A fault of the server's own; its log says more."""

    code = "INTERNAL"


class OutcomeUnknown(QueueberError):
    """The connection was lost while the call was under way: it may or may not have happened.

    Raised by clients only, for calls that are not safe to repeat.
    """

    code = "OUTCOME_UNKNOWN"


class DataDirLocked(QueueberError):
    """Another server uses the data directory."""


class StorageCorrupt(QueueberError):
    """The store cannot be opened; the operator looks."""


class StorageFailed(QueueberError):
    """The disk failed under a running server, which stops; the operator looks at the disk."""


class InvariantViolation(Exception):
    """A promise of the engine is broken: our bug. The server stops rather than go on."""


def invariant(condition: object, rule: str, **facts: object) -> None:
    """Stop with the number of the rule and the facts, unless the condition holds."""
    if not condition:
        told = ", ".join(f"{name}={value!r}" for name, value in facts.items())
        raise InvariantViolation(f"{rule} is broken: {told}")


WIRE_ERRORS: dict[str, type[QueueberError]] = {
    error.code: error
    for error in (
        InvalidArgument,
        NotFound,
        LeaseExpired,
        ResourceExhausted,
        Unavailable,
        Unauthenticated,
        PermissionDenied,
        Aborted,
        AlreadyExists,
        Internal,
    )
}

# Cap'n Proto libraries put words of their own in front of the text that the server sent.
_WIRE_TEXT = re.compile(
    r"^(?:remote exception: )?(?:message = )?(?P<code>[A-Z_]+): *(?P<text>.*)$", re.DOTALL
)


def from_wire(text: str) -> QueueberError:
    """The error that a server's text stands for; `Internal` when it is not one of ours."""
    match = _WIRE_TEXT.match(text)
    error = WIRE_ERRORS.get(match["code"]) if match else None
    if match is None or error is None:
        return Internal(text.strip())
    return error(match["text"].strip())
