"""Shared groups against a model: each message is in one state, whatever consumers do."""

from dataclasses import dataclass, field
from enum import Enum

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from queueber.engine.queue.redrive import redrive_first
from queueber.engine.topics import groups
from queueber.engine.topics.shared_groups import SharedGroup
from queueber.engine.topics.trim import trim_topic
from queueber.model import FailOutcome, GroupKind, Polled, Position, QueueSettings, Start
from tests.support.topic_rig import Place, TopicRig, places

PARTITIONS = 2
LEASE_MS = 1000
ATTEMPTS_MAX = 2
SIZE = 3


class State(Enum):
    FRESH = "fresh"
    LEASED = "leased"
    WAITING = "waiting"
    DEAD = "dead"
    DONE = "done"


@dataclass
class Message:
    state: State = State.FRESH
    attempts: int = 0


@dataclass
class Lease:
    polled: Polled
    expires_at_ms: int
    held: set[Place] = field(default_factory=set)


class SharedGroups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rig = TopicRig(partitions=PARTITIONS)
        self.rig.create_group(
            kind=GroupKind.SHARED,
            leases=QueueSettings(attempts_max=ATTEMPTS_MAX, backoff_ms=(0, 500)),
            in_flight_max=12,
        )
        self.messages: dict[Place, Message] = {}
        self.leases: list[Lease] = []

    def teardown(self) -> None:
        self._drain()
        self.rig.close()

    # --- the topic --------------------------------------------------------------------------------

    @rule(partition=st.integers(0, PARTITIONS - 1), count=st.integers(1, 6))
    def publish(self, partition: int, count: int) -> None:
        published = self.rig.publish(*[b"x" * SIZE] * count, partition=partition)
        self.messages |= {(partition, offset): Message() for offset in published.offsets}

    @rule(partition=st.integers(0, PARTITIONS - 1), part=st.floats(0, 1))
    def trim(self, partition: int, part: float) -> None:
        topic = self.rig.topic
        first, end = topic.first_offset(partition), topic.next_offset(partition)
        offset = first + int((end - first) * part / 2)
        self.rig.run(trim_topic, topic, partition, Position(Start.OFFSET, offset))

    def is_kept(self, place: Place) -> bool:
        return place[1] >= self.rig.topic.first_offset(place[0])

    # --- consumers --------------------------------------------------------------------------------

    @rule(count=st.integers(1, 8))
    def poll(self, count: int) -> None:
        polled = self.rig.poll(count, lease_ms=LEASE_MS)
        found = places(polled)
        assert len(found) <= count
        assert list(polled.contents) == [b"x" * SIZE] * len(found)
        for place in found:
            assert self.is_kept(place)
            assert self.messages[place].state in (State.FRESH, State.WAITING)
            self.messages[place].state = State.LEASED
        if found:
            self.leases.append(Lease(polled, self.rig.now_ms + LEASE_MS, set(found)))
        assert self.in_state(State.LEASED) <= 12

    @rule(count=st.integers(1, 8), partition=st.integers(0, PARTITIONS - 1))
    def poll_partition(self, count: int, partition: int) -> None:
        before = {place: message.state for place, message in self.messages.items()}
        polled = self.rig.poll(count, lease_ms=LEASE_MS, partition=partition)
        found = places(polled)
        assert len(found) <= count
        assert {each[0] for each in found} <= {partition}
        assert found == sorted(found)
        if found:
            between = {
                state
                for place, state in before.items()
                if found[0] < place < found[-1] and place not in found and self.is_kept(place)
            }
            assert between <= {State.DONE, State.DEAD}, "somebody else has a message of the window"
            self.leases.append(Lease(polled, self.rig.now_ms + LEASE_MS, set(found)))
        for place in found:
            assert self.is_kept(place)
            assert before[place] in (State.FRESH, State.WAITING)
            self.messages[place].state = State.LEASED
        is_room = self.in_state(State.LEASED) < 12
        fresh = [each for each in self.kept_in(State.FRESH) if each[0] == partition]
        assert found or not is_room or not fresh, "there are messages that nobody has had"

    @rule(partition=st.integers(0, PARTITIONS - 1), part=st.floats(0, 1))
    def acknowledge_up_to(self, partition: int, part: float) -> None:
        topic = self.rig.topic
        group = groups.get_group(topic, "g")
        before = groups.floor(topic, group, partition)
        offset = int(topic.next_offset(partition) * part)

        stored = self.rig.ack(offset, partition)

        assert stored >= max(before, offset)
        for place, message in self.messages.items():
            is_settled = place[0] == partition and place[1] < offset
            if is_settled and message.state is not State.DEAD:
                message.state = State.DONE
        for lease in self.leases:
            lease.held = {
                place for place in lease.held if place[0] != partition or place[1] >= offset
            }
        assert stored == groups.floor(topic, group, partition)

    def _choose(self, data: st.DataObject) -> tuple[Lease, list[Place]]:
        lease = data.draw(st.sampled_from(self.leases))
        chosen = data.draw(st.lists(st.sampled_from(places(lease.polled)), min_size=1, unique=True))
        return lease, chosen

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        lease, chosen = self._choose(data)
        assert self.rig.remove(lease.polled, *chosen) == [each in lease.held for each in chosen]
        self._leave(lease, chosen, State.DONE)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        lease, chosen = self._choose(data)
        assert self.rig.release(lease.polled, *chosen) == [each in lease.held for each in chosen]
        self._leave(lease, chosen, State.WAITING)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        lease, chosen = self._choose(data)
        expected = [
            FailOutcome.REFUSED if each not in lease.held else self._failed(each) for each in chosen
        ]
        assert self.rig.fail(lease.polled, *chosen) == expected
        lease.held -= set(chosen)

    def _failed(self, place: Place) -> FailOutcome:
        message = self.messages[place]
        message.attempts += 1
        is_dead = message.attempts == ATTEMPTS_MAX
        message.state = State.DEAD if is_dead else State.WAITING
        return FailOutcome.DIED if is_dead else FailOutcome.RETRIED

    def _leave(self, lease: Lease, chosen: list[Place], state: State) -> None:
        for place in set(chosen) & lease.held:
            self.messages[place].state = state
        lease.held -= set(chosen)

    @rule(past_ms=st.sampled_from([1, 400, 1000]))
    def pass_time(self, past_ms: int) -> None:
        self.rig.now_ms += past_ms
        self.rig.sweep()
        for lease in self.leases:
            if lease.expires_at_ms <= self.rig.now_ms:
                held = list(lease.held)
                if len(held) == 1:
                    self._failed(held[0])
                    lease.held.clear()
                self._leave(lease, held, State.WAITING)

    @rule()
    def redrive(self) -> None:
        self.rig.sweep()
        queue = self.rig.shared()
        self.rig.run_on(queue, redrive_first, 100)
        assert isinstance(queue, SharedGroup)
        positions = queue.messages.positions
        for place, message in self.messages.items():
            if message.state is State.DEAD:
                # After a reset it may be among those that are next.
                is_next = place[1] >= positions.get(place[0], 0)
                self.messages[place] = Message(State.FRESH if is_next else State.WAITING)

    @rule(partition=st.sampled_from([None, 0, 1]), part=st.floats(0, 1))
    def reset(self, partition: int | None, part: float) -> None:
        """Every partition to the same part of its messages, forward or back."""
        chosen = range(PARTITIONS) if partition is None else [partition]
        topic, group = self.rig.topic, groups.get_group(self.rig.topic, "g")
        for each in chosen:
            first, end = topic.first_offset(each), topic.next_offset(each)
            offset = first + int((end - first) * part)
            self.rig.run(groups.reset_group, topic, group, each, Position(Start.OFFSET, offset))
            for place, message in self.messages.items():
                if place[0] == each and message.state is not State.DEAD:
                    is_next = place[1] >= offset
                    self.messages[place] = Message(State.FRESH if is_next else State.DONE)
            for lease in self.leases:
                lease.held = {place for place in lease.held if place[0] != each}

    @rule()
    def restart(self) -> None:
        self.rig.reopen()

    # --- what must hold ---------------------------------------------------------------------------

    def in_state(self, state: State) -> int:
        return sum(message.state is state for message in self.messages.values())

    def kept_in(self, *states: State) -> list[Place]:
        return [
            place
            for place, message in self.messages.items()
            if message.state in states and self.is_kept(place)
        ]

    @invariant()
    def the_floor_is_the_oldest_that_is_not_done(self) -> None:
        group = groups.get_group(self.rig.topic, "g")
        todo = self.kept_in(State.FRESH, State.LEASED, State.WAITING)
        for partition in range(PARTITIONS):
            end = self.rig.topic.next_offset(partition)
            offsets = [offset for each, offset in todo if each == partition]
            floor = groups.floor(self.rig.topic, group, partition)
            dead = {offset for each, offset in self.kept_in(State.DEAD) if each == partition}
            # After a reset dead letters may be among what is next.
            assert floor <= min(offsets, default=end)
            assert all(offset in dead for offset in range(floor, min(offsets, default=end)))

    @invariant()
    def the_counters_tell_what_there_is(self) -> None:
        counters = self.rig.shared().counters
        assert counters.leased == self.in_state(State.LEASED)
        # Messages that are deleted vanish soon after.
        waiting, dead = counters.ready + counters.delayed, counters.dead
        assert len(self.kept_in(State.WAITING)) <= waiting <= self.in_state(State.WAITING)
        assert len(self.kept_in(State.DEAD)) <= dead <= self.in_state(State.DEAD)
        assert counters.contents_bytes == SIZE * (counters.leased + waiting + dead)

    def _drain(self) -> None:
        """Consumers that acknowledge all they get, get every message but for dead letters."""
        for _ in range(200):
            self.poll(8)
            for lease in self.leases:
                if held := sorted(lease.held):
                    self.rig.remove(lease.polled, *held)
                    self._leave(lease, held, State.DONE)
            if not self.kept_in(State.FRESH, State.LEASED, State.WAITING):
                break
            self.pass_time(400)
        assert self.kept_in(State.FRESH, State.LEASED, State.WAITING) == []
        self.rig.sweep()
        counters = self.rig.shared().counters
        assert (counters.ready, counters.delayed, counters.leased) == (0, 0, 0)
        assert counters.dead == len(self.kept_in(State.DEAD))
        assert counters.quarantined == 0


TestSharedGroups = SharedGroups.TestCase
TestSharedGroups.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
