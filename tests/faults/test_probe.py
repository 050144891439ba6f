"""The probe of the simulation: it notices who waits in vain for tokens, and nothing else.

A rate of each of two keys is spent, and each has an item that waits for a token. Nobody polls, so
only the sweeper lets them go.
"""

import asyncio
from contextlib import closing
from random import Random
from typing import Any, NamedTuple

import pytest

from faults.simulation.disk import Disk, no_families
from faults.simulation.loop import SimulatedClock, SimulatedLoop
from faults.simulation.probe import waits_in_vain
from faults.simulation.server import Server
from queueber.db.records.keys import NEVER_MS
from queueber.engine.kernel import due_scan
from queueber.limits import LOOKAHEAD_RETRY_MS
from queueber.model import NewItems, QueueSettings

KEYS = ("ann", "bob")
APART_MS = 10
"""After the rate of one key is spent, that of the other is."""
TOKEN_MS = 100
TOKENS_MS = [TOKEN_MS, APART_MS + TOKEN_MS]
SEEN_MS = 300


class Seen(NamedTuple):
    let_go_ms: list[int]
    """When each item was let go."""
    wrong_ms: list[int]
    """When the probe found something wrong."""


def see(*, gives_up: bool) -> Seen:
    """What happens if each look ahead of the sweeper gives up, or none."""
    clock = SimulatedClock()
    with closing(SimulatedLoop(clock)) as loop:
        return loop.run_until_complete(_see(loop, clock, gives_up))


async def _see(loop: SimulatedLoop, clock: SimulatedClock, gives_up: bool) -> Seen:
    failed: list[BaseException] = []
    server = Server(
        Disk(no_families()),
        clock=clock,
        loop=loop,
        random=Random(0),
        sync_seconds=lambda: 0,
        on_sync_failure=failed.append,
        on_bug=failed.append,
    )
    server.store._gives_up = lambda: gives_up
    service, session = server.service, server.session
    settings = QueueSettings(cap_by="who", cap_by_rate_items=1, cap_by_rate_ms=TOKEN_MS)
    await service.queues.create_queue("capped", settings, session)
    queue = server.handle("capped")
    began_ms = clock.now_ms()
    for key in KEYS:
        await service.items.add(queue, NewItems([b"x"] * 2, attributes=[{"who": key}] * 2))
        await service.polls.poll(queue, 2, lease_ms=60_000, wait_ms=0)
        await asyncio.sleep(APART_MS / 1000)
    assert queue.state.counters.parked == len(KEYS)

    seen = Seen([], [])
    while (at_ms := clock.now_ms() - began_ms) < SEEN_MS:
        gone = len(KEYS) - queue.state.counters.parked - len(seen.let_go_ms)
        seen.let_go_ms.extend([at_ms] * gone)
        if list(waits_in_vain(server, queue.state, ())):
            seen.wrong_ms.append(at_ms)
        await asyncio.sleep(0.001)
    await asyncio.wait(server.bury())
    assert not failed
    return seen


def test_each_is_let_go_when_its_token_is_back() -> None:
    assert see(gives_up=False) == Seen(TOKENS_MS, [])


def test_one_whose_time_is_not_known_is_let_go_a_little_later_and_nothing_is_wrong() -> None:
    first_ms, second_ms = TOKENS_MS
    later_ms = first_ms + LOOKAHEAD_RETRY_MS
    assert later_ms > second_ms

    assert see(gives_up=True) == Seen([first_ms, later_ms], [])


def test_it_is_wrong_if_nobody_looks_again_that_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due_scan, "LOOKAHEAD_RETRY_MS", LOOKAHEAD_RETRY_MS + 1)

    first_ms, second_ms = TOKENS_MS
    later_ms = first_ms + LOOKAHEAD_RETRY_MS + 1
    assert see(gives_up=True) == Seen([first_ms, later_ms], [*range(second_ms, later_ms)])


def test_it_is_wrong_at_once_if_the_time_was_known(monkeypatch: pytest.MonkeyPatch) -> None:
    look_ahead = due_scan.look_ahead

    def forgetful(*where: Any) -> tuple[int, int]:
        return look_ahead(*where)[0], NEVER_MS

    monkeypatch.setattr(due_scan, "look_ahead", forgetful)

    assert see(gives_up=False) == Seen(TOKENS_MS[:1], [*range(TOKENS_MS[1], SEEN_MS)])
