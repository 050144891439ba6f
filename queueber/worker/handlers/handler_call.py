"""One call of a handler: deserialize, call, serialize; what is raised becomes a failure."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from queueber.worker.handlers.handler_outcome import Failed, failure_of
from queueber.worker.handlers.serializers import Deserializer, Serializer, to_result
from queueber.worker.work_item import WorkItem


def make_call(
    handler: Callable[[WorkItem], object],
    serializer: Serializer | None,
    deserializer: Deserializer | None,
) -> Callable[[WorkItem], bytes | Failed]:
    """A function that never raises: whatever the handler raises, even SystemExit, is a failure."""

    def call(item: WorkItem) -> bytes | Failed:
        try:
            if deserializer is not None:
                item.value = deserializer(item.contents)
            returned = handler(item)
            return returned if type(returned) is bytes else to_result(returned, serializer)
        except BaseException as error:  # noqa: BLE001  every error belongs to its item
            return failure_of(error)

    return call


def make_async_call(
    handler: Callable[[WorkItem], Awaitable[object]],
    serializer: Serializer | None,
    deserializer: Deserializer | None,
    is_cancellation: Callable[[BaseException], bool],
) -> Callable[[WorkItem], Coroutine[Any, Any, bytes | Failed]]:
    """A coroutine that raises only when the pool cancels it, as `is_cancellation` tells."""

    async def call(item: WorkItem) -> bytes | Failed:
        try:
            if deserializer is not None:
                item.value = deserializer(item.contents)
            returned = await handler(item)
            return returned if type(returned) is bytes else to_result(returned, serializer)
        except BaseException as error:
            if is_cancellation(error):
                raise
            return failure_of(error)

    return call
