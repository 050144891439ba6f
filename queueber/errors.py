"""Errors, by what the caller or operator should do.

The server sends a `QueueberError` as its code, a colon and a sentence; `from_wire` turns that back
into the same class. `InvariantViolation` is a bug of Queueber: the server stops.
"""

import re
from typing import ClassVar


class QueueberError(Exception):
    """Base of every error that a caller may see.

    Some have numbers that programs need, such as where a log ends. They stand at the end of the
    text, in brackets: so they travel with it.
    """

    code: ClassVar[str] = "INTERNAL"
    retryable: ClassVar[bool] = False
    """Whether a client may retry the call: the server has done nothing."""

    def __init__(self, text: str = "", **numbers: int) -> None:
        if numbers:
            text += f" [{' '.join(f'{name}={number}' for name, number in numbers.items())}]"
        super().__init__(text)

    @property
    def sentence(self) -> str:
        """The text for people, without the numbers at its end."""
        return _NUMBERS.sub("", str(self))

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of the error, by name."""
        match = _NUMBERS.search(str(self))
        pairs = match["pairs"].split() if match else []
        return {name: int(number) for name, number in (pair.split("=") for pair in pairs)}

    def __init_subclass__(cls, code: str | None = None) -> None:
        """An error without a code of its own has that of its base class."""
        if code is not None:
            cls.code = code


class InvalidArgument(QueueberError, code="INVALID_ARGUMENT"):
    """An argument is wrong; change it."""


class NotFound(QueueberError, code="NOT_FOUND"):
    """The queue, topic, group, batch, load or snapshot does not exist."""


class LeaseExpired(QueueberError, code="LEASE_EXPIRED"):
    """Reserved for other servers: this one does not send it."""


class ResourceExhausted(QueueberError, code="RESOURCE_EXHAUSTED"):
    """A size or a count is above a limit of the queue or the server."""


class Unavailable(QueueberError, code="UNAVAILABLE"):
    """The server cannot do it now, and has done nothing; retry."""

    retryable = True


class Unauthenticated(QueueberError, code="UNAUTHENTICATED"):
    """The server does not accept the token, the password or the certificate; or it has no
    certificate that the client trusts."""


class PermissionDenied(QueueberError, code="PERMISSION_DENIED"):
    """The caller lacks a right; the sentence says which one, on which queue or topic."""


class Aborted(QueueberError, code="ABORTED"):
    """The call conflicts with another producer's or load's newer epoch, with a commit, or with the
    consumer that has taken over."""


class FailedPrecondition(QueueberError, code="FAILED_PRECONDITION"):
    """The topic is not as the call needs it: it is closed, or it ends elsewhere."""


class OutOfRange(QueueberError, code="OUT_OF_RANGE"):
    """The offset is before the first message that is kept, or past the end."""


class AlreadyExists(QueueberError, code="ALREADY_EXISTS"):
    """A queue, topic or group of that name exists with other settings."""


class Internal(QueueberError, code="INTERNAL"):
    """The server failed; its log says why."""


class OutcomeUnknown(QueueberError, code="OUTCOME_UNKNOWN"):
    """The connection was lost during the call, which may or may not have happened.

    Only clients raise it, for calls that are not safe to retry.
    """


class DataDirLocked(QueueberError):
    """Another server uses the data directory."""


class StorageCorrupt(QueueberError):
    """The store cannot be opened or read; the message says what to do."""


class StorageFailed(QueueberError):
    """The disk failed while the server ran, and the server stops; check the disk."""


class InvariantViolation(Exception):
    """An invariant of the engine is broken, which is a bug of Queueber. The server stops."""


def invariant(condition: object, rule: str, **facts: object) -> None:
    """Raise `InvariantViolation` with the rule's number and the facts if the condition is false."""
    if not condition:
        shown = ", ".join(f"{name}={value!r}" for name, value in facts.items())
        raise InvariantViolation(f"{rule} is broken: {shown}")


_NUMBERS = re.compile(r" \[(?P<pairs>\w+=\d+(?: \w+=\d+)*)\]$")

WIRE_ERRORS: dict[str, type[QueueberError]] = {
    error.code: error
    for error in QueueberError.__subclasses__()
    if "code" in vars(error) and error is not OutcomeUnknown
}
"""The errors that a server sends, by their codes."""

# Cap'n Proto libraries put a prefix in front of the server's text.
_WIRE_TEXT = re.compile(
    r"^(?:remote exception: )?(?:message = )?(?P<code>[A-Z_]+): *(?P<text>.*)$", re.DOTALL
)


def from_wire(text: str) -> QueueberError:
    """The error in a server's text; `Internal` if the text has no known code."""
    match = _WIRE_TEXT.match(text)
    error = WIRE_ERRORS.get(match["code"]) if match else None
    if match is None or error is None:
        return Internal(text.strip())
    return error(match["text"].strip())
