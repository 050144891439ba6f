"""Codecs of the options of items: each that some item has once, and for each item which it has."""

from collections.abc import Sequence
from typing import Any

from queueber.errors import InvalidArgument
from queueber.limits import ADD_ITEMS_MAX, ITEM_BACKOFF_STEPS_MAX
from queueber.model import NO_OPTIONS, ItemOptions
from queueber.wire.lists import read_list

_AS_THE_QUEUE_SAYS = -1


def read_options_of(request: Any, count: int) -> Sequence[ItemOptions]:
    """The options of each of `count` items."""
    given = [read_options(each) for each in read_list("options", request.options, ADD_ITEMS_MAX)]
    chosen = read_list("optionsOf", request.optionsOf, ADD_ITEMS_MAX)
    if not chosen and len(given) == 1:
        return given * count
    table = [NO_OPTIONS, *given]
    if len(chosen) != count:
        raise InvalidArgument(
            f"optionsOf: {len(chosen)} for {count} items and {len(given)} options; give one for "
            "each item"
        )
    if max(chosen) > len(given):
        raise InvalidArgument(f"optionsOf: {max(chosen)} is none of the {len(given)} options")
    return [table[each] for each in chosen]


def write_options_of(request: Any, options: Sequence[ItemOptions]) -> None:
    numbers = {NO_OPTIONS: 0}
    chosen = [numbers.setdefault(each, len(numbers)) for each in options]
    table = list(numbers)[1:]
    target = request.init("options", len(table))
    for at, each in enumerate(table):
        write_options(target[at], each)
    if len(table) > 1 or 0 in chosen:
        request.optionsOf = chosen


def read_options(source: Any) -> ItemOptions:
    attempts_max = source.attemptsMax
    return ItemOptions(
        None if attempts_max == _AS_THE_QUEUE_SAYS else attempts_max,
        tuple(read_list("options.backoffMs", source.backoffMs, ITEM_BACKOFF_STEPS_MAX)),
        source.timeoutMs,
        source.expiresMs,
    )


def write_options(target: Any, options: ItemOptions) -> None:
    if options.attempts_max is not None:
        target.attemptsMax = options.attempts_max
    if options.backoff_ms:
        target.backoffMs = list(options.backoff_ms)
    if options.timeout_ms:
        target.timeoutMs = options.timeout_ms
    if options.expires_ms:
        target.expiresMs = options.expires_ms
