"""The members of a fleet. Each runs in its own process until it is killed.

    python -m faults.death.members ROLE ADDRESS FILE NAME SEED

A member records all its calls in the file. While it cannot reach the server, it retries.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import queueber
from faults.death import ordered_members, topic_members
from faults.observed import ObservedQueue
from faults.observed_pool import run_observed_pool
from faults.recorder import Recorder, recording_to

LEASE_SECONDS = 1.0
QUEUE = "default"
"""The only queue that a client of the original schema knows."""
TASKS = "tasks"
"""The queue of the pools."""
BATCHES = ("one", "two")
_PAUSE_SECONDS = 0.03
"""Average pause between calls, so that the machine is busy with faults rather than with items."""


def _call_for_ever(address: str, random: Random, call: Callable[[queueber.Client], None]) -> None:
    with queueber.connect(address, connect_timeout=60) as client:
        while True:
            try:
                call(client)
            except (queueber.OutcomeUnknown, queueber.Unavailable):
                # On a busy machine the server may be down again before a client has connected.
                continue
            time.sleep(random.uniform(0, 2 * _PAUSE_SECONDS))


def produce(address: str, recorder: Recorder, name: str, random: Random) -> None:
    def call(client: queueber.Client) -> None:
        queue = ObservedQueue(client.queue(random.choice([QUEUE, TASKS])), recorder, name)
        sizes = [random.randrange(8, 200) for _ in range(random.randrange(1, 30))]
        keys = [f"{name} {random.getrandbits(40)}" for _ in sizes] if random.random() < 0.3 else []
        queue.add(
            [random.randbytes(size) for size in sizes],
            batch=random.choice(["", *BATCHES]),
            delay=random.choice([0, 0, 0, 0.3]),
            keys=keys,
        )

    _call_for_ever(address, random, call)


def consume(address: str, recorder: Recorder, name: str, random: Random) -> None:
    def call(client: queueber.Client) -> None:
        queue = ObservedQueue(client.queue(QUEUE), recorder, name)
        lease = queue.poll(random.randrange(1, 40), lease=LEASE_SECONDS, wait=0.5)
        some = lease.ids[: random.randrange(len(lease) + 1)]
        if not some:
            return
        match random.randrange(8):
            case 0:
                queue.fail(some, lease.id, delay=0.1)
            case 1:
                queue.release(some, lease.id)
            case 2:
                queue.extend(lease.id, LEASE_SECONDS)
                queue.remove(some, lease.id)
            case 3:
                with contextlib.suppress(queueber.NotFound):  # nobody has added to it yet
                    queue.receipt(random.choice(BATCHES))
            case 4 | 5:
                queue.complete({item_id: b"done " + item_id[-4:] for item_id in some}, lease.id)
            case _:
                queue.remove(some, lease.id)

    _call_for_ever(address, random, call)


def work(address: str, recorder: Recorder, name: str, random: Random) -> None:
    """Run a worker pool."""

    def handle(item: queueber.WorkItem) -> bytes:
        if random.random() < 0.05:
            raise queueber.Retry("not now", delay=0.1)
        time.sleep(random.uniform(0, 0.02))
        return b"of " + item.id[-4:]

    while True:
        with contextlib.suppress(queueber.Unavailable):  # the server was not there at the start
            run_observed_pool(recorder, name, address, TASKS, handle, lease=LEASE_SECONDS)


Role = Callable[[str, Recorder, str, Random], None]
ROLES: Mapping[str, Role] = {
    "produce": produce,
    "consume": consume,
    "work": work,
    "publish": topic_members.publish,
    "follow": topic_members.follow,
    "share": topic_members.share,
    "subscribe": topic_members.subscribe,
    "push": ordered_members.push,
    "move": ordered_members.move,
}


def main() -> None:
    role, address, file, name, seed = sys.argv[1:]
    with recording_to(Path(file)) as recorder:
        ROLES[role](address, recorder, name, Random(seed))


if __name__ == "__main__":
    main()
