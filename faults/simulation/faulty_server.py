"""A server that crashes and restarts, with a disk that fills up and a clock that is changed."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from faults.history import Outcome
from faults.recorder import Recorder
from faults.simulation.disk import Crashed, Disk, Families, no_families
from faults.simulation.group_roles import REBORN_QUEUE
from faults.simulation.loop import SimulatedClock, SimulatedLoop
from faults.simulation.network import Network
from faults.simulation.probe import waits_in_vain
from faults.simulation.roles import BATCHES
from faults.simulation.route_roles import ALL_CHANGES, ROUTED, TOPICS_OF_ROUTES
from faults.simulation.server import Server
from faults.simulation.topic_roles import (
    ACKED,
    BRIDGE,
    BRIDGED,
    JOINED,
    ORDERED,
    PLAIN,
    PUSHED,
    SHARED,
)
from queueber.model import (
    EventPayload,
    GroupKind,
    GroupSettings,
    Position,
    QueueSettings,
    Schedule,
    Source,
    TopicConfig,
)

QUEUES = ("default", "other")

_CRASHES_MAX = 4
_WRITES_OF_A_LIFE = 40
_DOWN_SECONDS_MAX = 0.05
_GRACE_SECONDS = 0.05
_FLUSH_SECONDS = 0.01
_CLOCK_STEPS_MS = (-200, -20, 20, 200)


_NO_CAPS = dict.fromkeys(
    (
        "concurrency_max", "rate_items", "rate_ms", "cap_by_concurrency_max", "cap_by_rate_items",
        "cap_by_rate_ms",
    ),
    0,
)  # fmt: skip


class FaultyServer:
    def __init__(
        self,
        loop: SimulatedLoop,
        clock: SimulatedClock,
        network: Network,
        recorder: Recorder,
        found_wrong: Callable[[str], None],
        note: Callable[[str], None],
        random: Random,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._network = network
        self._recorder = recorder
        self._found_wrong = found_wrong
        self._note = note
        self._random = random
        self._crashes_left = random.randint(0, _CRASHES_MAX)
        self._crash_at = 0
        """The write of this run after which it crashes; 0: none."""
        self._is_slow_to_sync = random.random() < 0.5
        self._is_peace = False
        self._is_up = asyncio.Event()
        """Whether it runs, and its disk works."""
        self._restarting: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self.now: Server
        """The present run of the server."""
        self.crashes = 0

    async def start(
        self,
        settings: QueueSettings,
        topics: Mapping[str, TopicConfig] | None = None,
        caps: Mapping[str, int] | None = None,
        schedules: Sequence[Schedule] = (),
    ) -> None:
        self._begin_life(no_families())
        queues, session = self.now.service.queues, self.now.session
        await queues.configure_queue(QUEUES[0], settings, session)
        await queues.create_queue(QUEUES[1], settings, session)
        await self.set_caps(caps or {})
        for name, config in (topics or {}).items():
            await self._create_topic(name, config)
        if topics:
            await self._create_queues_of_topics()
            await self._create_routes()
        for schedule in schedules:
            await self.now.service.schedules.put(schedule, session)
        self._choose_crash()
        for chance, fault in ((0.2, self._fill_disk), (0.1, self._break_disk), (0.1, self._stop)):
            if self._random.random() < chance:
                self._loop.call_later(self._random.uniform(0, 0.2), fault)

    async def set_caps(self, caps: Mapping[str, int]) -> None:
        """Set the caps of the queues that everybody uses; those that are not given are none."""
        queues, session = self.now.service.queues, self.now.session
        for name in QUEUES:
            present = queues.stats(self.now.handle(name)).settings
            given: dict[str, Any] = {**_NO_CAPS, **caps}
            wanted = replace(present, **given)
            if wanted != present:
                pending = self._recorder.begin("world", "caps", name, given)
                await queues.configure_queue(name, wanted, session)
                self._recorder.end(pending, Outcome.OK)

    async def _create_topic(self, name: str, config: TopicConfig) -> None:
        service, session = self.now.service, self.now.session
        await service.topics.create_topic(name, config, session)
        topic = await service.topics.open_topic(name, session, must_exist=True)
        groups = {ORDERED: GroupKind.ORDERED, SHARED: GroupKind.SHARED, PUSHED: GroupKind.ORDERED}
        has = {PLAIN: (ORDERED, SHARED, PUSHED), ACKED: (ORDERED,)}.get(name, (ORDERED, SHARED))
        for group, kind in [(each, groups[each]) for each in has]:
            leases = QueueSettings(attempts_max=self._random.choice([1, 3]), backoff_ms=(3, 20))
            given = GroupSettings(kind, leases=leases)
            await service.groups.create_group(topic, group, given, Position())

    async def _create_queues_of_topics(self) -> None:
        service, session = self.now.service, self.now.session
        for queue in (BRIDGED, JOINED, REBORN_QUEUE):
            await service.queues.create_queue(queue, QueueSettings(), session)
        topic = await service.topics.open_topic(PLAIN, session, must_exist=True)
        given = GroupSettings(GroupKind.QUEUE, queue=BRIDGED)
        await service.groups.create_group(topic, BRIDGE, given, Position())

    async def _create_routes(self) -> None:
        service, session = self.now.service, self.now.session
        for name, config in TOPICS_OF_ROUTES.items():
            await service.topics.create_topic(name, config, session)
        topic = await service.topics.open_topic(ROUTED, session, must_exist=True)
        for queue in QUEUES:
            for on in ALL_CHANGES:
                source = Source(queue, on, payload=EventPayload.DIFF)
                await service.routes.add_source(topic, source)

    async def make_peace(self) -> None:
        """Inject no further faults."""
        if self._stopping is not None:
            await self._stopping
        await self._is_up.wait()
        self._is_peace = True
        self._crash_at = 0
        self.now.disk.is_full = False
        service = self.now.service
        if BRIDGED in service.shell.engine.queues:
            # What was too large for it goes on.
            await service.queues.configure_queue(BRIDGED, QueueSettings(), self.now.session)

    def _begin_life(self, families: Families) -> None:
        disk = Disk(families)
        self.now = Server(
            disk,
            clock=self._clock,
            loop=self._loop,
            random=Random(self._random.random()),
            sync_seconds=self._sync_seconds,
            on_sync_failure=lambda _: self._crash(),
            on_bug=lambda error: self._found_wrong(f"the server failed: {error!r}"),
        )
        # No crash during the first writes of a new store.
        disk.on_write = self._written
        self._is_up.set()
        self._network.serve(self.now)

    def _sync_seconds(self) -> float:
        mean_ms = self._random.choice([0.2, 2, 30] if self._is_slow_to_sync else [0.1, 0.5])
        return self._random.expovariate(1 / mean_ms) / 1000

    # --- faults -----------------------------------------------------------------------------------

    def _choose_crash(self) -> None:
        self._crash_at = 0
        if self._crashes_left:
            self._crashes_left -= 1
            self._crash_at = self.now.disk.written + self._random.randint(1, _WRITES_OF_A_LIFE)

    def _written(self) -> None:
        disk = self.now.disk
        self._note(f"write {disk.written}, {disk.synced} are synced")
        if disk.written == self._crash_at:
            self._crash()
            raise Crashed
        self._loop.call_soon(self._probe, self.now)

    def _crash(self) -> None:
        self._note("crash")
        self._is_up.clear()
        self.now.disk.crash()
        self._restarting = self._loop.create_task(self._restart())

    def _probe(self, server: Server) -> None:
        # A full disk may have interrupted it; it continues later.
        if server.disk.is_dead or server.disk.was_full:
            return
        for queue in server.service.shell.engine.queues:
            for wrong in waits_in_vain(server, queue, BATCHES):
                self._found_wrong(f"in vain: {wrong}")

    async def _restart(self) -> None:
        random = self._random
        self.crashes += 1
        pending = self._recorder.begin("world", "restart", "", {})
        self._network.serve(None)
        if tasks := self.now.bury():
            await asyncio.wait(tasks)
        left, lost = self.now.disk.left_after_crash(random)
        self._note(f"{lost} writes are lost")
        await asyncio.sleep(random.uniform(0, _DOWN_SECONDS_MAX))
        if random.random() < 0.2:
            self._step_clock(random.choice(_CLOCK_STEPS_MS))
        self._begin_life(left)
        self._choose_crash()
        pending.answered(sequence=self.now.service.shell.engine.topics.sequences.last)
        self._recorder.end(pending, Outcome.OK)

    def _step_clock(self, ms: int) -> None:
        """Change the wall clock, which the server reads when it starts."""
        pending = self._recorder.begin("world", "clock_step", "", {"ms": ms})
        self._clock.offset_ms += ms
        self._recorder.end(pending, Outcome.OK)

    def _fill_disk(self) -> None:
        if not self._is_peace:
            disk = self.now.disk
            disk.is_full = disk.was_full = True
            self._note("the disk is full")
            self._loop.call_later(self._random.uniform(0, 0.02), self._make_room, disk)

    def _break_disk(self) -> None:
        """Make the next sync fail, so that the server stops."""
        if not self._is_peace and not self.now.disk.is_dead:
            self._note("the disk is broken")
            self._is_up.clear()
            self.now.disk.is_broken = True
            # The fault shows only at a write.
            self._loop.call_later(_DOWN_SECONDS_MAX, self._give_up, self.now)

    def _give_up(self, server: Server) -> None:
        if not server.disk.is_dead:
            self._crash()

    def _stop(self) -> None:
        if not self._is_peace and not self.now.disk.is_dead:
            self._stopping = self._loop.create_task(self._stop_in_order(self.now))

    async def _stop_in_order(self, server: Server) -> None:
        """Shut down as `app.py` does: answer calls under way, then close connections."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_SECONDS):
                await server.service.drain()
        await asyncio.sleep(_FLUSH_SECONDS)
        if not server.disk.is_dead and not server.disk.is_broken:
            self._note("stopped in order")
            server.disk.sync(server.disk.written)
            self._crash()

    def _make_room(self, disk: Disk) -> None:
        self._note("the disk has free space again")
        disk.is_full = False
