"""What is to be added, as calls of bounded size."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from queueber.cli.described import Described
from queueber.client.arguments.new_items import AddOptions
from queueber.limits import ITEM_WIRE_BYTES, MIB

T = TypeVar("T")

CALL_ITEMS_MAX = 1000
_CALL_BYTES_MAX = MIB
_TEXT_WIRE_BYTES = 16


@dataclass(frozen=True, slots=True)
class CommonOptions:
    """What the command line says of all items."""

    delay: float
    priority: int
    attributes: Mapping[str, str]
    batch: str | None
    key: str | None = None
    """Of the only item."""


@dataclass(frozen=True, slots=True)
class NewCall:
    contents: list[bytes]
    options: AddOptions
    input_bytes: int
    """How much of the input it was."""


def call_bytes_max(message_bytes_max: int) -> int:
    """The same for all but the smallest servers: a load that is repeated must fall into the same
    calls."""
    return min(_CALL_BYTES_MAX, message_bytes_max // 2)


def split_calls(
    items: Iterable[T], size_of: Callable[[T], int], bytes_max: int
) -> Iterator[list[T]]:
    """The items as calls within our own bounds; an item that is over them goes alone."""
    call: list[T] = []
    call_bytes = 0
    for item in items:
        size = size_of(item) + ITEM_WIRE_BYTES
        if call and (len(call) == CALL_ITEMS_MAX or call_bytes + size > bytes_max):
            yield call
            call, call_bytes = [], 0
        call.append(item)
        call_bytes += size
    if call:
        yield call


def plain_calls(items: Iterable[bytes], common: CommonOptions, bytes_max: int) -> Iterator[NewCall]:
    """Items that are nothing but their contents."""
    more_bytes = _size_of_attributes(common.attributes)
    options = AddOptions(
        delay=common.delay,
        priority=common.priority,
        attributes=common.attributes,
        key=common.key,
        batch=common.batch,
    )
    for contents in split_calls(items, lambda item: len(item) + more_bytes, bytes_max):
        yield NewCall(contents, options, sum(map(len, contents)) + len(contents))


def described_calls(
    items: Iterable[Described], common: CommonOptions, bytes_max: int
) -> Iterator[NewCall]:
    """Items that say more of themselves; what they leave out is as the command line says."""
    more_bytes = _size_of_attributes(common.attributes)

    def size_of(item: Described) -> int:
        key_bytes = len((item.key or "").encode()) + _TEXT_WIRE_BYTES
        return len(item.contents) + key_bytes + _size_of_attributes(item.attributes) + more_bytes

    for items_of_call in split_calls(items, size_of, bytes_max):
        options = AddOptions(
            delay=[common.delay if i.delay is None else i.delay for i in items_of_call],
            priority=[common.priority if i.priority is None else i.priority for i in items_of_call],
            attributes=[{**common.attributes, **i.attributes} for i in items_of_call],
            key=[item.key for item in items_of_call],
            batch=common.batch,
        )
        contents = [item.contents for item in items_of_call]
        yield NewCall(contents, options, sum(item.input_bytes for item in items_of_call))


def _size_of_attributes(attributes: Mapping[str, str]) -> int:
    texts = [*attributes, *attributes.values()]
    return sum(len(text.encode()) + _TEXT_WIRE_BYTES for text in texts)
