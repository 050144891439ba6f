"""Workflows in the simulation: a caller fans out, and asks for an item once a batch is complete.

Everybody works on the batches; nobody polls the queue that gets the items, so that at the end it
has every one that was ever added.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from faults.rules.callbacks import Asked
from faults.rules.waits import Waiter
from faults.simulation.caller import Caller
from faults.simulation.network import ConnectionLost
from queueber.model import NO_OPTIONS, Callback, ItemOptions, NewItems

CALLED_BACK = "called-back"
"""The queue that gets the items."""
_TRIES_MAX = 3


@dataclass
class Flows:
    """What the caller knows of its callbacks."""

    asked: list[Asked] = field(default_factory=list)
    waiters: list[Waiter] = field(default_factory=list)


async def fan_out(caller: Caller, known: Flows) -> None:
    number = 0
    while not caller.rumours.is_over:
        number += 1
        batch = f"flow {number}"
        contents = [f"{batch}.{at}".encode() for at in range(caller.random.randint(1, 3))]
        try:
            added = await caller.add(NewItems(contents, batch=batch))
        except ConnectionLost:
            added = None
        if added is not None:
            caller.rumours.items += added.ids
            await caller.sleep_ms(caller.random.choice([1, 20]))
            known.asked.append(Asked(batch, await _ask(caller, batch)))
            await _add_after(caller, known, batch, added.ids)
        await caller.sleep_ms(caller.random.choice([5, 20]))


async def _add_after(caller: Caller, known: Flows, batch: str, ids: Sequence[bytes]) -> None:
    """Add an item that waits for those, or for their batch, and sometimes one that waits for it."""
    after, after_batch = tuple(ids), ""
    for number in range(caller.random.choice([0, 1, 2])):
        if number == 0 and caller.random.random() < 0.3:
            after_batch = batch
        contents = [f"{batch} after {number}".encode()]
        items = NewItems(contents, after=() if after_batch else after, after_batch=after_batch)
        try:
            added = await caller.add(items)
        except ConnectionLost:
            return
        if added is None:
            return
        known.waiters.append(Waiter(added.ids[0], after))
        caller.rumours.items += added.ids
        after, after_batch = tuple(added.ids), ""


def options_of_batch(batch: str) -> ItemOptions:
    """What the item of its callback has of its own: every other one has something."""
    return ItemOptions(9, (len(batch),), 5000) if batch[-1] in "13579" else NO_OPTIONS


async def _ask(caller: Caller, batch: str) -> bool:
    """Whether the call was answered. One whose answer was lost is repeated, as a client does."""
    is_known = False
    for _ in range(_TRIES_MAX):
        try:
            callback = Callback(CALLED_BACK, batch.encode(), options=options_of_batch(batch))
            is_known = await caller.when_complete(batch, callback)
        except ConnectionLost:
            continue
        if is_known and caller.random.random() < 0.8:
            break  # else it repeats a call that was answered
        await caller.sleep_ms(5)
    return is_known
