"""Arguments and results of jobs as JSON: what a codec does, and the one for plain JSON.

The contents of a job's item are a JSON object: `{"job": "resize", "args": {"width": 200}}`, and
`"timeout"` in seconds if the item has a limit of its own; `"own_backoff": true` says that it was
added with a backoff that counts in place of the job's. Every program may add such items.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from queueber.errors import InvalidArgument
from queueber.worker.handlers.kinds import JobItem
from queueber.worker.handlers.time_limit import to_timeout

T = TypeVar("T")


class Own(NamedTuple):
    """What an item has of its own, in place of what its job says."""

    timeout: float | None = None
    has_backoff: bool = False


NOTHING_OWN = Own()
Opened = tuple[str, Any, Own]
"""The contents of an item: the name of its job, its arguments for `JobCodec.decode`, what it has of
its own."""


class JobCodec(Protocol):
    """The arguments and results of one job."""

    def encode(self, arguments: Mapping[str, Any], own: Own) -> bytes:
        """The contents of an item; `InvalidArgument` if the arguments are not those of the job."""

    def decode(self, args: Any) -> dict[str, Any]: ...

    def calling(self, function: Callable[..., T]) -> Callable[[JobItem], T]:
        """Calls the function with the arguments that an item has."""

    def encode_result(self, returned: object) -> bytes: ...

    def decode_result(self, result: bytes) -> Any: ...


def to_own(timeout: Any, has_backoff: bool) -> Own:
    """`ValueError` if no worker could keep to the time limit."""
    if timeout is None and not has_backoff:
        return NOTHING_OWN
    try:
        return Own(to_timeout(timeout), has_backoff)
    except InvalidArgument as error:
        raise ValueError(str(error)) from None


class Codec(Protocol):
    def open(self, contents: bytes) -> Opened:
        """`ValueError` if the contents are not those of a job."""

    def of_job(
        self, job: str, parameters: Mapping[str, inspect.Parameter], returns: Any
    ) -> JobCodec:
        """`InvalidArgument` if a type is none that can be sent. Annotations are types here."""


class PlainJson:
    """Without msgspec: names of arguments are checked, their types are not."""

    def open(self, contents: bytes) -> Opened:
        found = json.loads(contents)
        if not isinstance(found, dict) or not isinstance(found.get("job"), str):
            raise ValueError('an object with "job" was expected')  # noqa: TRY004  it is of data
        if not isinstance(args := found.get("args", {}), dict):
            raise ValueError('"args" is not an object')  # noqa: TRY004
        return found["job"], args, to_own(found.get("timeout"), found.get("own_backoff") is True)

    def of_job(
        self, job: str, parameters: Mapping[str, inspect.Parameter], returns: Any
    ) -> "PlainJob":
        return PlainJob(job)


class PlainJob:
    def __init__(self, job: str) -> None:
        self._job = job

    def encode(self, arguments: Mapping[str, Any], own: Own) -> bytes:
        contents: dict[str, Any] = {"job": self._job, "args": arguments}
        if own.timeout is not None:
            contents["timeout"] = own.timeout
        if own.has_backoff:
            contents["own_backoff"] = True
        try:
            return _to_json(contents)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArgument(f"{self._job}: an argument cannot be sent: {error}") from None

    def decode(self, args: Any) -> dict[str, Any]:
        decoded: dict[str, Any] = args
        return decoded

    def calling(self, function: Callable[..., T]) -> Callable[[JobItem], T]:
        return lambda item: function(**item.value)

    def encode_result(self, returned: object) -> bytes:
        return _to_json(returned)

    def decode_result(self, result: bytes) -> Any:
        return json.loads(result)


def _to_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def make_codec() -> Codec:
    """msgspec if it is installed (`queueber[jobs]`), else plain JSON."""
    try:
        import msgspec  # noqa: F401
    except ImportError:
        return PlainJson()
    from queueber.jobs.typed_codec import TypedJson

    return TypedJson()


def to_arguments(
    job: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by name; `InvalidArgument` if there are too many or too few."""
    try:
        return signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        names = ", ".join(signature.parameters)
        raise InvalidArgument(f"{job}({names}): {error}") from None
