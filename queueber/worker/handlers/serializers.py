"""From results to bytes and from contents to values.

Pickle is not among them: whoever may add an item could run code in the worker.
"""

import inspect
import json
from collections.abc import Callable
from typing import Any, Literal

Serializer = Callable[[Any], bytes]
Deserializer = Callable[[bytes], Any]
SerializerName = Literal["json"]


def _to_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


SERIALIZERS: dict[str, Serializer] = {"json": _to_json}
DESERIALIZERS: dict[str, Deserializer] = {"json": json.loads}


def to_result(returned: object, serializer: Serializer | None) -> bytes:
    """The result that is stored for what a handler returned; `TypeError` if there is none."""
    if returned is None:
        return b""
    if isinstance(returned, bytes | bytearray | memoryview):
        return _plain(returned)
    if inspect.iscoroutine(returned):
        returned.close()
        raise TypeError("the handler returned a coroutine; declare it with 'async def'")
    kind = type(returned).__name__
    if serializer is None:
        raise TypeError(
            f"the handler returned {kind}; return bytes or None, "
            "or give the worker a serializer such as 'json'"
        )
    serialized = serializer(returned)
    if not isinstance(serialized, bytes):
        raise TypeError(f"the serializer made {type(serialized).__name__} of {kind}, not bytes")
    return _plain(serialized)


def _plain(result: bytes | bytearray | memoryview) -> bytes:
    """Exactly `bytes`: a subclass could override `__bytes__`."""
    return bytes(memoryview(result))
