"""Callbacks: the item that is added once a batch is complete."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from queueber.errors import InvalidArgument
from queueber.limits import PRIORITY_DEFAULT
from queueber.model.items import NO_OPTIONS, ItemOptions
from queueber.model.results import Receipt


@dataclass(frozen=True, slots=True)
class Callback:
    """What its owner says of it."""

    to: str
    """The queue that gets the item."""
    contents: bytes = b""
    key: str = ""
    priority: int = PRIORITY_DEFAULT
    attributes: Mapping[str, str] = field(default_factory=dict)
    options: ItemOptions = NO_OPTIONS
    """What the item has of its own; it expires so long after it was added."""


@dataclass(frozen=True, slots=True)
class CallbackInfo:
    """A callback of a batch, and whether its item was added."""

    batch: str
    to: str
    created_at_ms: int
    item_id: bytes = b""
    """The item that was added; empty: the batch is not complete, or there is a problem."""
    problem: str = ""
    """Why the queue did not take the item; the server tries again."""


_PREFIX = "queueber."
_COUNTS = ("added", "done", "dead")


def receipt_attributes(queue: str, receipt: Receipt) -> dict[str, str]:
    """What the item of a callback says of its batch, and of the queue that has it."""
    found = {"queue": queue, "batch": receipt.batch}
    for name in _COUNTS:
        found[name] = str(getattr(receipt, name))
        found[f"{name}_digest"] = getattr(receipt, f"{name}_digest").hex()
    return {_PREFIX + name: value for name, value in found.items()}


def callback_receipt(attributes: Mapping[str, str]) -> Receipt:
    """The receipt that the item of a callback came with, from its attributes. `InvalidArgument` if
    the item is of no callback."""
    try:
        own = {name: attributes[_PREFIX + name] for name in ("batch", *_COUNTS)}
        added, done, dead = (int(own[name]) for name in _COUNTS)
        digests = {
            f"{name}_digest": bytes.fromhex(attributes[f"{_PREFIX}{name}_digest"])
            for name in _COUNTS
        }
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise InvalidArgument(
            f"attributes: they are not those of the item of a callback: {error!r}"
        ) from None
    live = added - done - dead
    return Receipt(own["batch"], added, done, dead, live, complete=True, **digests)
