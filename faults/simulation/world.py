"""A world: a server that crashes, and its callers, from a seed to the end of the history."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from faults.checker import check
from faults.final_state import FinalState
from faults.history import History
from faults.recorder import Recorder
from faults.simulation.caller import Caller
from faults.simulation.contact import Rumours
from faults.simulation.faulty_server import QUEUES, FaultyServer
from faults.simulation.loop import SimulatedClock, SimulatedLoop
from faults.simulation.network import ConnectionLost, Network
from faults.simulation.reading import final_state
from faults.simulation.roles import LEASES_MS, ROLES
from queueber.engine.integrity.check_store import check_store
from queueber.model import QueueSettings, Stats

_STORY_MS = (50, 400)
_DEADLINE_SECONDS = 60.0
"""Virtual time after which a caller that has not finished is stuck."""
_QUIET_MS = 10 * max(LEASES_MS)
"""After this time without callers, every lease, delay and pause has ended."""
SLACK_MS = 1.0
"""The server's clock has whole milliseconds, and otherwise equals that of the recorders."""


@dataclass
class Told:
    """The history of one seed, and what is wrong with it."""

    seed: int
    history: History = field(default_factory=History)
    events: list[tuple[float, str]] = field(default_factory=list)
    """Events beside the calls, with their times."""
    final: Mapping[str, FinalState] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    crashes: int = 0


class World:
    def __init__(self, seed: int, loop: SimulatedLoop, clock: SimulatedClock) -> None:
        self.told = Told(seed)
        self._random = random = Random(seed)
        self._clock = clock
        self._loop = loop
        self._recorder = Recorder(clock.observed_ms)
        self.told.history = self._recorder.history
        self._network = Network(loop, Random(random.random()), self._recorder)
        self._rumours = Rumours()
        self._server = FaultyServer(
            loop, clock, self._network, self._recorder, self.told.wrong.append, self._note,
            Random(random.random()),
        )  # fmt: skip

    def _note(self, text: str) -> None:
        self.told.events.append((self._clock.observed_ms(), text))

    async def run(self) -> None:
        try:
            async with asyncio.timeout(_DEADLINE_SECONDS):
                await self._story()
        except TimeoutError:
            self.told.wrong.append("stuck: a call still waits at the end")
        self.told.crashes = self._server.crashes

    async def _story(self) -> None:
        random = self._random
        await self._server.start(
            QueueSettings(
                attempts_max=random.choice([1, 2, 4]),
                backoff_ms=(3, 20),
                dedup_window_ms=random.choice([0, 40, 10_000]),
                result_bytes_max=random.choice([0, 0, 0, 400]),
            )
        )
        names = ["producer", "worker", *random.choices(list(ROLES), k=random.randint(1, 5))]
        queues = QUEUES if random.random() < 0.3 else QUEUES[:1]
        callers = [
            ROLES[name](self._caller(f"{name} {number}", random.choice(queues)))
            for number, name in enumerate(names)
        ]
        self._loop.call_later(random.uniform(*_STORY_MS) / 1000, self._end_story)
        await asyncio.gather(*callers)
        await self._server.make_peace()
        if random.random() < 0.5:
            for queue in queues:
                await self._drain(queue)
        await self._look_at_the_end()

    def _caller(self, name: str, queue: str) -> Caller:
        random = Random(self._random.random())
        return Caller(name, queue, self._network, self._recorder, self._rumours, random)

    def _end_story(self) -> None:
        self._rumours.is_over = True

    async def _drain(self, queue: str) -> None:
        """Check that every item can be polled once all leases, delays and pauses have ended."""
        caller = self._caller("drain", queue)
        try:
            await caller.resume()
            await asyncio.sleep(_QUIET_MS / 1000)
            stats = self._stats(queue)
            if stats.leased or stats.delayed or stats.waiting_polls:
                self.told.wrong.append(f"stuck: after a long time there are {stats}")
            while await caller.poll(100, lease_ms=60_000, wait_ms=0):
                pass
        except ConnectionLost:
            self.told.wrong.append("stuck: a connection broke without a fault")
        if ready := self._stats(queue).ready:
            self.told.wrong.append(f"stuck: {ready} ready items cannot be polled")

    def _stats(self, queue: str) -> Stats:
        server = self._server.now
        return server.service.queues.stats(server.handle(queue))

    async def _look_at_the_end(self) -> None:
        server = self._server.now
        await server.service.shell.durable(None)
        engine = server.service.shell.engine
        self.told.final = {
            name: final_state(server.service, engine, server.handle(name))
            for name in engine.queues.by_name
        }
        self.told.wrong += [f"store: {each}" for each in check_store(server.store)]
        violations = check(self.told.history, self.told.final, slack_ms=SLACK_MS)
        self.told.wrong += [str(each) for each in violations]


def simulate(seed: int) -> Told:
    """The history of a seed, and what is wrong with it."""
    clock = SimulatedClock()
    loop = SimulatedLoop(clock)
    world = World(seed, loop, clock)
    try:
        loop.run_until_complete(world.run())
    except Exception as error:  # noqa: BLE001  whatever it is, its seed is to be told
        world.told.wrong.append(f"the simulation failed: {error!r}")
    finally:
        _end_all_tasks(loop)
        loop.close()
    return world.told


def _end_all_tasks(loop: SimulatedLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks))
