"""Typed arguments and results: msgspec checks and converts them, with the types of the function.

Whatever msgspec knows may be a type: numbers, text, lists, dataclasses, dates, structs and
more. Models of pydantic may, too: they validate and dump themselves.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from queueber.errors import InvalidArgument
from queueber.jobs.codec import Opened, Own, T, to_own
from queueber.worker.handlers.kinds import JobItem


# Decoded JSON has no cycles, so the garbage collector need not look at these.
class _Contents(msgspec.Struct, omit_defaults=True, gc=False):
    job: str
    args: msgspec.Raw = msgspec.Raw(b"{}")
    timeout: float | None = None
    own_backoff: bool = False


def _to_plain(value: Any) -> Any:
    """Of what msgspec does not know: pydantic's models dump themselves."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise NotImplementedError(f"objects of type {type(value).__name__} cannot be sent")


def _from_plain(kind: Any, value: Any) -> Any:
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    raise NotImplementedError(f"objects of type {kind.__name__} cannot be sent")


_ENCODER = msgspec.json.Encoder(enc_hook=_to_plain)
_decode_contents = msgspec.json.Decoder(_Contents).decode
_asdict, _astuple = msgspec.structs.asdict, msgspec.structs.astuple
_REFUSED = (msgspec.MsgspecError, NotImplementedError, TypeError, ValueError, RecursionError)


class TypedJson:
    def open(self, contents: bytes) -> Opened:
        try:
            found = _decode_contents(contents)
        except msgspec.MsgspecError as error:
            raise ValueError(str(error)) from None
        return found.job, found.args, to_own(found.timeout, found.own_backoff)

    def of_job(
        self, job: str, parameters: Mapping[str, inspect.Parameter], returns: Any
    ) -> "TypedJob":
        return TypedJob(job, parameters, returns)


class TypedJob:
    def __init__(self, job: str, parameters: Mapping[str, inspect.Parameter], returns: Any) -> None:
        self._job = job
        self._are_positional = all(
            each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for each in parameters.values()
        )
        fields = [
            (each.name, each.annotation)
            if each.default is inspect.Parameter.empty
            else (each.name, each.annotation, msgspec.field(default_factory=_giving(each.default)))
            for each in parameters.values()
        ]
        # A typing mistake in the name of an argument must not pass for its default.
        try:
            kind = msgspec.defstruct(
                job, fields, kw_only=True, forbid_unknown_fields=True, gc=False
            )
            self._args = msgspec.json.Decoder(kind, dec_hook=_from_plain)
            self._decode_args = self._args.decode
        except _REFUSED as error:
            raise InvalidArgument(
                f"{job}: its arguments have a type that cannot be sent: {error}"
            ) from None
        try:
            self._result = msgspec.json.Decoder(returns, dec_hook=_from_plain)
        except _REFUSED as error:
            raise InvalidArgument(
                f"{job}: it returns a type that cannot be sent: {error}"
            ) from None

    def encode(self, arguments: Mapping[str, Any], own: Own) -> bytes:
        try:
            args = _encode(arguments)
            # Decoded as a worker will: what passes here passes there.
            self._args.decode(args)
        except _REFUSED as error:
            raise InvalidArgument(f"{self._job}: {_told(error)}") from None
        return _ENCODER.encode(_Contents(self._job, msgspec.Raw(args), *own))

    def decode(self, args: Any) -> dict[str, Any]:
        return _asdict(self._decode_args(args))

    def calling(self, function: Callable[..., T]) -> Callable[[JobItem], T]:
        decode_args, decode = self._decode_args, self.decode
        if self._are_positional:  # a tuple of them costs half as much as a dict
            return lambda item: function(*_astuple(decode_args(item.value)))
        return lambda item: function(**decode(item.value))

    def encode_result(self, returned: object) -> bytes:
        return _encode(returned)

    def decode_result(self, result: bytes) -> Any:
        try:
            return self._result.decode(result)
        except _REFUSED as error:
            raise TypeError(f"the result of {self._job} has another type: {_told(error)}") from None


def _encode(value: Any) -> bytes:
    """As JSON. msgspec writes what JSON has no number for as null: a worker would get None."""
    encoded = _ENCODER.encode(value)
    if b"null" in encoded:
        _check_finite(msgspec.to_builtins(value, enc_hook=_to_plain))
    return encoded


def _check_finite(plain: Any) -> None:
    left = [("", plain)]
    while left:
        path, each = left.pop()
        if isinstance(each, float) and not math.isfinite(each):
            raise ValueError(f"JSON has no {each} - at `${path}`")
        if isinstance(each, dict):
            left += [(f"{path}.{name}", value) for name, value in each.items()]
        elif isinstance(each, list | tuple):
            left += [(f"{path}[{at}]", value) for at, value in enumerate(each)]


def _giving(default: object) -> Any:
    return lambda: default


def _told(error: BaseException) -> str:
    """`Expected x, got y - at $.width` as `width: expected x, got y`."""
    told, _, path = str(error).partition(" - at `$")
    told = told if told[:2].isupper() else told[:1].lower() + told[1:]
    name = path.rstrip("`").lstrip(".")
    return f"{name}: {told}" if name else told
