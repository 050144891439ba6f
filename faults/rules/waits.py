"""The rules of items that wait for others: none is leased before all of that is done."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from faults.history import Call


@dataclass(frozen=True, slots=True)
class Waiter:
    """An item that was added to wait for others."""

    id: bytes
    after: tuple[bytes, ...]


def leased_in_order(waiters: Sequence[Waiter], calls: Sequence[Call]) -> Iterator[str]:
    """What an item waited for is leased to nobody any more once the item was. An item that was
    redriven may be leased at any time, so there is nothing to say of a queue with redrives."""
    if any(call.operation == "redrive" for call in calls):
        return
    polls = [call for call in calls if call.operation == "poll" and call.is_ok]
    last_began_ms = {each: call.began_ms for call in polls for each in call.answer["ids"]}
    first_ended_ms: dict[str, float] = {}
    for call in polls:
        for each in call.answer["ids"]:
            first_ended_ms[each] = min(call.ended_ms, first_ended_ms.get(each, call.ended_ms))
    for waiter in waiters:
        leased_ms = first_ended_ms.get(waiter.id.hex())
        for awaited in waiter.after if leased_ms is not None else ():
            again_ms = last_began_ms.get(awaited.hex(), 0)
            if leased_ms is not None and again_ms > leased_ms:
                yield (
                    f"item {waiter.id.hex()} was leased at {leased_ms}, before {awaited.hex()}, "
                    f"which was leased at {again_ms}"
                )
