"""A world: a server that crashes, and its callers, from a seed to the end of the history."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from faults.checker import check
from faults.facts import Facts
from faults.final_state import FinalState
from faults.history import SCHEDULES, TOPICS, History
from faults.recorder import Recorder
from faults.routes.stored import check_routed
from faults.simulation.caller import CAP_BY, Caller
from faults.simulation.contact import Rumours
from faults.simulation.disk import Crashed
from faults.simulation.faulty_server import QUEUES, FaultyServer
from faults.simulation.flow_reading import look_at_flows
from faults.simulation.flow_roles import CALLED_BACK, Flows, fan_out
from faults.simulation.group_roles import GROUP_ROLES, REBORN, REBORN_QUEUE, bear_again
from faults.simulation.loop import SimulatedClock, SimulatedLoop
from faults.simulation.network import ConnectionLost, Network
from faults.simulation.reading import final_state
from faults.simulation.roles import LEASES_MS, ROLES, produce_plainly
from faults.simulation.route_reading import check_rerouted
from faults.simulation.route_roles import ROUTED, reroute
from faults.simulation.schedule_reading import look_at_schedules
from faults.simulation.schedule_roles import STEADY, TICKING, ScheduleCaller, Touched, reschedule
from faults.simulation.server import Server
from faults.simulation.subscriber import Subscriber
from faults.simulation.topic_caller import GroupCaller, TopicCaller
from faults.simulation.topic_reading import final_group, final_topics
from faults.simulation.topic_roles import (
    BRIDGED,
    PLAIN,
    SHARED,
    TOPIC_ROLES,
    consume,
    consume_partition,
    topics_to_create,
)
from faults.topics.checker import check_topics
from faults.topics.facts import with_adds
from queueber.engine.integrity.check_store import check_store
from queueber.model import QueueSettings, Stats

_STORY_MS = (50, 400)
_DEADLINE_SECONDS = 60.0
"""Virtual time after which a caller that has not finished is stuck."""
_QUIET_MS = 10 * max(LEASES_MS)
"""After this time without callers, every lease, delay and pause has ended."""
_DEAD_AGES_MS = (0, 0, 20, 100, 5000)
_TOPICS_CHANCE = 0.5
"""Of a history that has topics beside its queues."""
_SCHEDULES_CHANCE = 0.3
_FLOWS_CHANCE = 0.3
_QUIET_OF_FLOWS_MS = 1500
"""After this time what was due when the disk was full has been tried again."""
_QUIET_OF_TOPICS_MS = 3000
"""After this time topics that nobody uses have been looked at, even if their clock was set back."""
_BRIDGES = {BRIDGED: PLAIN, REBORN_QUEUE: REBORN}
"""The topic whose messages each of some queues gets."""
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
        self._topics = topics_to_create(random) if random.random() < _TOPICS_CHANCE else {}
        of_schedules = Random(f"schedules of {seed}")  # the other callers stay as they are
        self._has_schedules = of_schedules.random() < _SCHEDULES_CHANCE
        self._touched = Touched()
        self._flows = Flows() if Random(f"flows of {seed}").random() < _FLOWS_CHANCE else None
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

    def callback_failed(self, _: object, context: Mapping[str, Any]) -> None:
        """A callback of the loop raised an error, which reaches nobody else."""
        error = context.get("exception")
        if error is not None and not isinstance(error, Crashed):
            self.told.wrong.append(f"the server failed: {error!r}")

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
                cap_by=CAP_BY,
                dead_age_ms=Random(f"dead age of {self.told.seed}").choice(_DEAD_AGES_MS),
            ),
            self._topics,
            _caps_of(self.told.seed),
            [STEADY] if self._has_schedules else [],
        )
        names = ["producer", "worker", *random.choices(list(ROLES), k=random.randint(1, 5))]
        queues = QUEUES if random.random() < 0.3 else QUEUES[:1]
        callers = [
            ROLES[name](self._caller(f"{name} {number}", random.choice(queues)))
            for number, name in enumerate(names)
        ]
        callers += self._crowd(queues[0])
        if self._topics:
            callers += self._callers_of_topics()
            callers += self._callers_of_routes()
        if self._has_schedules:
            callers.append(reschedule(self._schedule_caller(), self._touched))
        if self._flows is not None:
            callers.append(fan_out(self._flow_caller(), self._flows))
        self._loop.call_later(random.uniform(*_STORY_MS) / 1000, self._end_story)
        await asyncio.gather(*callers)
        await self._server.make_peace()
        await self._server.set_caps({})
        if random.random() < 0.5:
            for queue in queues:
                await self._drain(queue)
        if self._topics:
            await asyncio.sleep(_QUIET_OF_TOPICS_MS / 1000)
        if self._flows is not None:
            await asyncio.sleep(_QUIET_OF_FLOWS_MS / 1000)
        await self._look_at_the_end()

    def _caller(self, name: str, queue: str) -> Caller:
        random = Random(self._random.random())
        return Caller(name, queue, self._network, self._recorder, self._rumours, random)

    def _crowd(self, queue: str) -> list[Awaitable[None]]:
        """Callers whose adds are so plain that they share writes, in one history of four."""
        count = Random(f"crowd of {self.told.seed}").choice([0, 0, 0, 4])
        return [produce_plainly(self._caller(f"plain {each}", queue)) for each in range(count)]

    def _callers_of_topics(self) -> list[Awaitable[None]]:
        random = Random(self._random.random())
        names = ["publisher", *random.choices(list(TOPIC_ROLES), k=random.randint(1, 4))]
        callers = [
            TOPIC_ROLES[name](self._topic_caller(f"{name} {number}"))
            for number, name in enumerate(names)
        ]
        for name in random.choices(list(GROUP_ROLES), k=random.randint(0, 3)):
            callers.append(GROUP_ROLES[name](self._subscriber(f"{name} {len(callers)}")))
        if random.random() < 0.5:
            callers.append(bear_again(self._topic_caller("reborn")))
        for number in range(random.randint(0, 3)):
            consumer = Random(random.random())
            role = consume_partition if random.random() < 0.5 else consume
            callers.append(
                role(
                    GroupCaller(
                        f"consumer {number}", f"{PLAIN}/{SHARED}", self._network, self._recorder,
                        self._rumours, consumer,
                    )
                )
            )  # fmt: skip
        return callers

    def _callers_of_routes(self) -> list[Awaitable[None]]:
        random = Random(f"routes of {self.told.seed}")  # the other callers stay as they are
        if random.random() < 0.5:
            return []
        caller = TopicCaller(
            "rerouter", TOPICS, self._network, self._recorder, self._rumours,
            Random(random.random()),
        )  # fmt: skip
        return [reroute(caller, random.choice(QUEUES))]

    def _schedule_caller(self) -> ScheduleCaller:
        random = Random(f"rescheduler of {self.told.seed}")
        return ScheduleCaller(
            "rescheduler", SCHEDULES, self._network, self._recorder, self._rumours, random
        )

    def _flow_caller(self) -> Caller:
        random = Random(f"fan out of {self.told.seed}")
        return Caller("fan out", QUEUES[0], self._network, self._recorder, self._rumours, random)

    def _topic_caller(self, name: str) -> TopicCaller:
        random = Random(self._random.random())
        return TopicCaller(name, TOPICS, self._network, self._recorder, self._rumours, random)

    def _subscriber(self, name: str) -> Subscriber:
        random = Random(self._random.random())
        return Subscriber(name, TOPICS, self._network, self._recorder, self._rumours, random)

    def _end_story(self) -> None:
        self._rumours.is_over = True

    async def _drain(self, queue: str) -> None:
        """Check that every item can be polled once all leases, delays and pauses have ended."""
        caller = self._caller("drain", queue)
        try:
            await caller.resume()
            await asyncio.sleep(_QUIET_MS / 1000)
            stats = self._stats(queue)
            if stats.leased or stats.delayed > stats.waiting or stats.waiting_polls:
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
            name: final_state(
                server.service, engine, server.handle(name), self._clock.observed_ms()
            )
            for name in engine.queues.by_name
            if name not in {TICKING, CALLED_BACK}
        }
        if self._has_schedules:
            self.told.wrong += look_at_schedules(server, self._touched)
        if self._flows is not None:
            calls = self.told.history.of(QUEUES[0]).calls
            self.told.wrong += look_at_flows(server, QUEUES[0], self._flows, calls)
        self.told.wrong += [f"store: {each}" for each in check_store(server.store)]
        if self._topics:
            self._look_at_topics(server)
        history = self.told.history
        if self._topics:
            history = with_adds(history, {f"{PLAIN}/{SHARED}": PLAIN}, _BRIDGES)
        violations = check(history, self.told.final, slack_ms=SLACK_MS)
        self.told.wrong += [str(each) for each in violations]

    def _look_at_topics(self, server: Server) -> None:
        service = server.service
        final = final_topics(service)
        plain = service.shell.engine.topics.find(PLAIN)
        if plain is None:
            self.told.wrong.append("lost: the topic that all publish to")
            return
        engine, now_ms = service.shell.engine, service.shell.clock.now_ms()
        for queue in QUEUES:
            facts = Facts(self.told.history.of(queue), self.told.final[queue], SLACK_MS)
            self.told.wrong += check_routed(engine, queue, ROUTED, now_ms, facts)
        self.told.wrong += check_rerouted(engine, self.told.history, now_ms)
        group = final_group(service, plain, SHARED, server.session)
        self.told.final = {**self.told.final, f"{PLAIN}/{SHARED}": group}
        found = check_topics(self.told.history, final, self.told.final, _BRIDGES)
        self.told.wrong += [str(each) for each in found]


def _caps_of(seed: int) -> Mapping[str, int]:
    """The caps of both queues, for some seeds; whatever they are, all else stays as it is."""
    random = Random(f"caps of {seed}")
    if random.random() < 0.6:
        return {}
    rate_items, rate_ms = random.choice([(0, 0), (3, 30), (10, 50)])
    given = {
        "concurrency_max": random.choice([0, 1, 4]), "rate_items": rate_items, "rate_ms": rate_ms,
        "cap_by_concurrency_max": random.choice([0, 1, 2]),
    }  # fmt: skip
    key_items, key_ms = random.choice([(0, 0), (1, 30), (2, 40), (5, 50)])
    return {**given, "cap_by_rate_items": key_items, "cap_by_rate_ms": key_ms}


def simulate(seed: int) -> Told:
    """The history of a seed, and what is wrong with it."""
    clock = SimulatedClock()
    loop = SimulatedLoop(clock)
    world = World(seed, loop, clock)
    loop.set_exception_handler(world.callback_failed)
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
