"""Arguments and results of jobs as JSON: what a codec does, and the one for plain JSON.

The contents of a job's item are a JSON object: `{"job": "resize", "args": {"width": 200}}`, and
`"timeout"` in seconds if the item has a limit of its own. Every program may add such items.
"""

import inspect
import json
from collections.abc import Mapping
from typing import Any, Protocol

from queueber.errors import InvalidArgument

Opened = tuple[str, Any, float | None]
"""The contents of an item: the name of its job, its arguments for `JobCodec.decode`, its limit."""


class JobCodec(Protocol):
    """The arguments and results of one job."""

    def encode(self, arguments: Mapping[str, Any], timeout: float | None) -> bytes:
        """The contents of an item; `InvalidArgument` if the arguments are not those of the job."""

    def decode(self, args: Any) -> dict[str, Any]: ...

    def encode_result(self, returned: object) -> bytes: ...

    def decode_result(self, result: bytes) -> Any: ...


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
        timeout = found.get("timeout")
        if timeout is not None and (
            isinstance(timeout, bool) or not isinstance(timeout, int | float)
        ):
            raise ValueError('"timeout" is not a number')
        return found["job"], args, timeout

    def of_job(
        self, job: str, parameters: Mapping[str, inspect.Parameter], returns: Any
    ) -> "PlainJob":
        return PlainJob(job)


class PlainJob:
    def __init__(self, job: str) -> None:
        self._job = job

    def encode(self, arguments: Mapping[str, Any], timeout: float | None) -> bytes:
        contents: dict[str, Any] = {"job": self._job, "args": arguments}
        if timeout is not None:
            contents["timeout"] = timeout
        try:
            return _to_json(contents)
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"{self._job}: an argument cannot be sent: {error}") from None

    def decode(self, args: Any) -> dict[str, Any]:
        decoded: dict[str, Any] = args
        return decoded

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
