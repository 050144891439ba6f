"""Those who work on the routed queue while its server is killed; every call is recorded."""

import contextlib
import json
import threading
import time
from collections.abc import Callable
from random import Random

import queueber
from faults.observed import ObservedQueue
from faults.recorder import Recorder
from queueber.limits import ATTRIBUTES_MAX
from queueber.model import ItemState

QUEUE = "work"
_BACKLOG_MAX = 2000
_LONG_LEASE_S = 60
_KINDS: tuple[dict[str, str], ...] = (
    {"kind": "a"}, {"kind": "b"}, {}, {str(n): "" for n in range(ATTRIBUTES_MAX)},
)  # fmt: skip
"""The last ones are too many for an event."""

Step = Callable[[queueber.Queue, ObservedQueue, Random], None]


def guarded(
    wrong: list[str],
    step: Step,
    name: str,
    address: str,
    recorder: Recorder,
    is_over: threading.Event,
    random: Random,
) -> None:
    """Do a step again and again; what a kill interrupts is forgotten."""
    try:
        with queueber.connect(address) as client:
            queue = client.queue(QUEUE)
            observed = ObservedQueue(queue, recorder, name)
            while not is_over.is_set():
                with contextlib.suppress(queueber.QueueberError):
                    step(queue, observed, random)
    except Exception as error:  # noqa: BLE001  whatever it is, it is told
        wrong.append(f"{name}: {error!r}")


def _produce(queue: queueber.Queue, observed: ObservedQueue, random: Random) -> None:
    if queue.stats().ready > _BACKLOG_MAX:
        time.sleep(0.05)
        return
    count = random.randint(1, 20)
    items = [{"n": random.randrange(100), "customer": random.choice("abcd")} for _ in range(count)]
    observed.add(
        [json.dumps(each).encode() for each in items],
        delay=random.choice([0, 0, 0, 0.02]),
        keys=[random.choice(["", f"k{random.randrange(1_000_000)}"]) for _ in items],
        attributes=[random.choice(_KINDS) for _ in items],
    )


def _work(queue: queueber.Queue, observed: ObservedQueue, random: Random) -> None:
    lease_s = random.choice([0.05, _LONG_LEASE_S])
    lease = observed.poll(random.randint(1, 8), lease=lease_s, wait=0.2)
    if not lease:
        return
    ids = list(lease.ids)
    match random.randrange(6):
        case 0:
            observed.remove(ids, lease.id)
        case 1:
            observed.fail(ids, lease.id)
        case 2:
            observed.release(ids, lease.id)
        case 3:
            pass  # it expires, or is cancelled
        case _:
            observed.complete(dict.fromkeys(ids, b"done"), lease.id)


def _operate(queue: queueber.Queue, observed: ObservedQueue, random: Random) -> None:
    time.sleep(0.05)
    match random.randrange(5):
        case 0:
            observed.redrive()
        case 1:
            observed.purge(ItemState.DEAD)
        case 2:
            state = random.choice([ItemState.READY, ItemState.DELAYED, ItemState.LEASED])
            observed.cancel([each.id for each in queue.peek(state, limit=3).items])
        case 3:
            state = random.choice([ItemState.READY, ItemState.DELAYED])
            ids = [each.id for each in queue.peek(state, limit=3).items]
            observed.reschedule(ids, random.choice([0, 0.02]))
        case _:
            observed.purge(ItemState.LEASED)


ROLES: tuple[Step, ...] = (_produce, _work, _work, _operate)
