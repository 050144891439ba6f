"""The roles of callers: producers, workers, operators and readers.

They are careless on purpose. Workers sleep through their leases, die, hang up, and report what they
no longer hold; operators take away what others are at work on.
"""

from collections.abc import Awaitable, Callable, Mapping
from itertools import cycle
from random import Random
from typing import TypeAlias, TypeVar

from faults.simulation.caller import PLAIN, Caller
from faults.simulation.network import ConnectionLost
from queueber.model import NO_OPTIONS, ItemOptions, ItemState, NewItems, Polled, Producer

T = TypeVar("T")

BATCHES = ("one", "two", "three")
FORGOTTEN_BATCH = "three"
"""The one that operators forget: the rules know more of the others."""
KEYS = 8
"""The keys that items have, if they have any."""
LEASES_MS = (15, 40, 120)
DELAYS_MS = (0, 0, 5, 30)
OPTIONS = (
    NO_OPTIONS, NO_OPTIONS, ItemOptions(1), ItemOptions(None, (0, 10), 50),
    ItemOptions(expires_ms=40), ItemOptions(2, expires_ms=90),
)  # fmt: skip

_TRIES_MAX = 4
"""Retries of a call whose answer was lost."""
_BATCH_SHARE = 0.3
"""Of purges that take the items of a batch alone."""

Role: TypeAlias = Callable[[Caller], Awaitable[None]]


async def produce(caller: Caller) -> None:
    random = caller.random
    is_numbered = random.random() < 0.5
    has_keys = random.random() < 0.4
    epoch = sequence = number = 0
    while not caller.rumours.is_over:
        count = random.randint(1, 4)
        contents = [f"{caller.name}.{number + at}".encode() for at in range(count)]
        number += count
        items = NewItems(
            contents,
            delays_ms=_maybe(random, [random.choice(DELAYS_MS) for _ in contents]),
            priorities=_maybe(random, [random.choice([1, 5, 9]) for _ in contents]),
            keys=[f"key {random.randrange(KEYS)}" for _ in contents] if has_keys else (),
            batch=random.choice(["", *BATCHES]),
            producer=Producer(caller.name, epoch, sequence + 1) if is_numbered else None,
            options=_maybe(random, [random.choice(OPTIONS) for _ in contents]),
        )
        is_known = await _add(caller, items, is_safe_to_repeat=is_numbered)
        if is_numbered:
            # A producer that does not know the outcome of a call begins a new epoch.
            epoch, sequence = (epoch, sequence + 1) if is_known else (epoch + 1, 0)
        await caller.sleep_ms(random.choice([1, 10, 30]))


async def produce_plainly(caller: Caller) -> None:
    """Items with nothing but contents: the adds of several such callers share a write."""
    number = 0
    while not caller.rumours.is_over:
        number += 1
        await _add(
            caller, NewItems([PLAIN + f"{caller.name}.{number}".encode()]), is_safe_to_repeat=False
        )
        await caller.sleep_ms(caller.random.choice([0.2, 10, 20]))


async def _add(caller: Caller, items: NewItems, *, is_safe_to_repeat: bool) -> bool:
    """Returns whether the outcome is known in the end."""
    for _ in range(_TRIES_MAX if is_safe_to_repeat else 1):
        try:
            added = await caller.add(items)
        except ConnectionLost:
            continue
        if added is not None:
            caller.rumours.items += added.ids
            if items.producer is None or caller.random.random() < 0.9:
                return True
            # It repeats a call that was answered.
        await caller.sleep_ms(5)
    return False


async def work(caller: Caller) -> None:
    random = caller.random
    lease_ms, is_bound = random.choice(LEASES_MS), random.random() < 0.4
    before: Polled | None = None
    while not caller.rumours.is_over:
        try:
            polled = await caller.poll(
                random.randint(1, 4),
                lease_ms=lease_ms,
                wait_ms=random.choice([0, 20, 50]),
                is_bound=is_bound,
            )
            if polled is None:
                await caller.sleep_ms(3)
                continue
            await caller.sleep_ms(random.choice([0.2, 2, lease_ms / 2, lease_ms * 1.5]))
            # Now and then a worker reports on an item that it lost long ago.
            chosen = before if before is not None and random.random() < 0.1 else polled
            await _finish(caller, chosen, lease_ms)
            before = polled
        except ConnectionLost:
            continue


async def _finish(caller: Caller, polled: Polled, lease_ms: int) -> None:
    random, lease = caller.random, polled.lease_id
    some = [each for each in polled.ids if random.random() < 0.7] or list(polled.ids)
    is_whole = len(some) == polled.count and random.random() < 0.5
    match random.choice(
        [
            "complete",
            "complete",
            "complete",
            "remove",
            "fail",
            "release",
            "extend",
            "die",
            "hang up",
        ]
    ):
        case "complete":
            results = [f"{caller.name} did {each.hex()[-6:]}".encode() for each in some]
            complete = caller.complete_whole if is_whole else caller.complete
            await _insist(caller, lambda: complete(some, lease, results))
        case "remove":
            remove = caller.remove_whole if is_whole else caller.remove
            await _insist(caller, lambda: remove(some, lease))
        case "fail":
            await caller.fail(some, lease, random.choice([-1, *DELAYS_MS]))
        case "release":
            await caller.release(some, lease)
        case "extend":
            await caller.extend(lease, random.choice(LEASES_MS))
            await caller.sleep_ms(lease_ms)
            await caller.complete(some, lease, [b"late"] * len(some))
        case "hang up":
            caller.hang_up()


async def _insist(caller: Caller, report: Callable[[], Awaitable[None]]) -> None:
    """Retry a report whose answer was lost: at worst it is refused."""
    for _ in range(caller.random.randint(1, _TRIES_MAX)):
        try:
            await report()
        except ConnectionLost:
            continue
        return


async def operate(caller: Caller) -> None:
    random, items = caller.random, caller.rumours.items
    by_key = cycle([True, False, False])
    while not caller.rumours.is_over:
        await caller.sleep_ms(random.choice([5, 25]))
        some = random.sample(items, min(len(items), random.randint(1, 3)))
        try:
            match random.choice(
                ["cancel", "purge", "redrive", "redrive", "pause", "receipt", "forget", "later"]
            ):
                case "cancel" if some and bool(next(by_key)):
                    await caller.cancel_key(f"key {some[0][-1] % KEYS}")
                case "cancel" if some:
                    await caller.cancel(some)
                case "later" if some:
                    await caller.reschedule(some, random.choice(DELAYS_MS))
                case "purge" if random.random() < _BATCH_SHARE:
                    state, batch = random.choice(list(ItemState)), random.choice(BATCHES)
                    await caller.cancel_batch(batch, state, random.randint(1, 5))
                case "purge":
                    await caller.purge(random.choice(list(ItemState)), random.randint(1, 3))
                case "redrive":
                    await caller.redrive(some if random.random() < 0.5 else [], 3)
                case "pause":
                    await caller.pause(random.choice([0, 20, 60]))
                    await caller.sleep_ms(random.choice([10, 40]))
                    await caller.resume()
                case "forget":
                    await caller.forget_batch(FORGOTTEN_BATCH)
                case _:
                    await caller.receipt(random.choice(BATCHES))
        except ConnectionLost:
            continue


async def read(caller: Caller) -> None:
    random = caller.random
    reader = random.choice(["", caller.name])
    while not caller.rumours.is_over:
        await caller.sleep_ms(random.choice([1, 20]))
        try:
            if random.random() < 0.4:
                await caller.wait_batch(random.choice(BATCHES), random.choice([5, 50]))
                continue
            if reader and random.random() < 0.05:
                await caller.drop_reader(reader)
            found = await caller.read_results(reader, random.randint(1, 6), random.choice([0, 30]))
            if found is not None and reader and random.random() < 0.7:
                await caller.ack_results(reader, found.next_offset)
        except ConnectionLost:
            continue


def _maybe(random: Random, column: list[T]) -> list[T]:
    return column if random.random() < 0.3 else []


ROLES: Mapping[str, Role] = {
    "producer": produce,
    "worker": work,
    "operator": operate,
    "reader": read,
}
