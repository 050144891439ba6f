"""Splits items into batches of bounded size: one batch is one call to the server."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar, cast

from queueber.cli.adding.jsonl_items import JsonlItem
from queueber.client.arguments.item_options import Moment
from queueber.client.arguments.moments import to_delay
from queueber.client.arguments.new_items import AddOptions
from queueber.client.arguments.values import Seconds
from queueber.limits import ITEM_WIRE_BYTES, MIB

T = TypeVar("T")

BATCH_ITEMS_MAX = 1000
_BATCH_BYTES_MAX = MIB
_TEXT_WIRE_BYTES = 16


@dataclass(frozen=True, slots=True)
class ItemDefaults:
    """What the flags of the command set for all items."""

    delay: float
    priority: int
    attributes: Mapping[str, str]
    batch: str | None
    key: str | None = None
    """Only for a single item."""
    at: datetime | None = None
    """In place of a delay."""
    after: tuple[str, ...] = ()
    after_batch: str | None = None
    attempts: int | None = None
    backoff: Sequence[float] | None = None
    timeout: float | None = None
    expires: Moment | None = None

    @property
    def own(self) -> AddOptions:
        """What items have of their own, as far as the flags say."""
        given = {
            "attempts": self.attempts,
            "backoff": self.backoff,
            "timeout": self.timeout,
            "expires": self.expires,
        }
        return cast("AddOptions", {k: each for k, each in given.items() if each is not None})

    @property
    def delay_now(self) -> Seconds:
        """How long items stay hidden that are sent now."""
        return self.delay if self.at is None else to_delay(self.at, "--at")


@dataclass(frozen=True, slots=True)
class NewBatch:
    contents: list[bytes]
    arguments: AddOptions
    input_bytes: int
    """How many bytes of the input it took."""


def batch_bytes_max(message_bytes_max: int) -> int:
    """The same for all but the smallest servers: a producer that repeats its input must form the
    same batches."""
    return min(_BATCH_BYTES_MAX, message_bytes_max // 2)


def split_batches(
    items: Iterable[T], size_of: Callable[[T], int], bytes_max: int
) -> Iterator[list[T]]:
    """Batches of at most 1000 items and `bytes_max`; a larger item is a batch of its own."""
    batch: list[T] = []
    batch_bytes = 0
    for item in items:
        size = size_of(item) + ITEM_WIRE_BYTES
        if batch and (len(batch) == BATCH_ITEMS_MAX or batch_bytes + size > bytes_max):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(item)
        batch_bytes += size
    if batch:
        yield batch


def plain_batches(
    items: Iterable[bytes], defaults: ItemDefaults, bytes_max: int
) -> Iterator[NewBatch]:
    """Batches of items that have contents only."""
    more_bytes = _size_of_attributes(defaults.attributes)
    for contents in split_batches(items, lambda item: len(item) + more_bytes, bytes_max):
        arguments = AddOptions(
            delay=defaults.delay_now,
            priority=defaults.priority,
            attributes=defaults.attributes,
            key=defaults.key,
            batch=defaults.batch,
            after=defaults.after,
            after_batch=defaults.after_batch,
        )
        arguments.update(defaults.own)
        yield NewBatch(contents, arguments, sum(map(len, contents)) + len(contents))


def jsonl_batches(
    items: Iterable[JsonlItem], defaults: ItemDefaults, bytes_max: int
) -> Iterator[NewBatch]:
    """Batches of items from JSON lines; `defaults` fill in what a line leaves out."""
    more_bytes = _size_of_attributes(defaults.attributes)

    def size_of(item: JsonlItem) -> int:
        key_bytes = len((item.key or "").encode()) + _TEXT_WIRE_BYTES
        return len(item.contents) + key_bytes + _size_of_attributes(item.attributes) + more_bytes

    for batch in split_batches(items, size_of, bytes_max):
        delay = defaults.delay_now
        arguments = AddOptions(
            delay=[delay if i.delay is None else i.delay for i in batch],
            priority=[defaults.priority if i.priority is None else i.priority for i in batch],
            attributes=[{**defaults.attributes, **i.attributes} for i in batch],
            key=[item.key for item in batch],
            batch=defaults.batch,
            after=defaults.after,
            after_batch=defaults.after_batch,
        )
        arguments.update(_own_options(batch, defaults))
        contents = [item.contents for item in batch]
        yield NewBatch(contents, arguments, sum(item.input_bytes for item in batch))


def _own_options(batch: Sequence[JsonlItem], defaults: ItemDefaults) -> AddOptions:
    """What the items have of their own; of those that say nothing, what the flags say."""
    columns: dict[str, list[object]] = {
        "attempts": [defaults.attempts if i.attempts is None else i.attempts for i in batch],
        "backoff": [defaults.backoff if i.backoff is None else i.backoff for i in batch],
        "timeout": [defaults.timeout if i.timeout is None else i.timeout for i in batch],
        "expires": [defaults.expires if i.expires is None else i.expires for i in batch],
    }
    given = {k: each for k, each in columns.items() if any(e is not None for e in each)}
    return cast("AddOptions", given)


def _size_of_attributes(attributes: Mapping[str, str]) -> int:
    texts = [*attributes, *attributes.values()]
    return sum(len(text.encode()) + _TEXT_WIRE_BYTES for text in texts)
