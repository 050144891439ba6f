"""A run: faults in random order on a working fleet, then the check of its history."""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import queueber
from faults.checker import check
from faults.death.blows import BLOWS, Target, shifted_server
from faults.death.fleet import DRAINERS, running_fleet
from faults.death.members import BATCHES, QUEUE, TASKS
from faults.death.ordered_members import (
    BRIDGE,
    BRIDGED,
    MOVED,
    MOVERS,
    PUSHED,
    STEPS,
    create_ordered_groups,
)
from faults.death.shifted_clock import HOUR_MS
from faults.death.topic_members import (
    COPIES,
    JOINED,
    MESSAGES,
    ORDERED,
    SHARED,
    SUBSCRIBERS,
    create_topics,
)
from faults.final_state import FinalState
from faults.history import Call, History, Outcome, merged
from faults.observed import read_final_state
from faults.observed_topic import read_final_group, read_final_topics
from faults.recorder import Recorder, monotonic_ms, read_histories
from faults.topics import pushes
from faults.topics.checker import check_topics
from faults.topics.facts import TopicFacts, with_adds
from faults.topics.final import FinalTopics
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store

_WAIT_SECONDS_MAX = 120.0
_AT_THE_END = "at the end"
_GROUP = f"{MESSAGES}/{SHARED}"


@dataclass(slots=True)
class Row:
    """The counts and violations of one kind of fault."""

    count: int = 0
    calls: "Counter[Outcome]" = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Told:
    rows: dict[str, Row]
    history: History
    moved: int
    """Messages that were published to another topic in the call that acknowledged them."""

    @property
    def wrong(self) -> list[str]:
        return [each for row in self.rows.values() for each in row.wrong]

    def acknowledged(self, *operations: str) -> int:
        """Number of items in answered calls."""
        return sum(
            len(call.answer.get("ids", call.answer.get("done", ())))
            for call in self.history.calls
            if call.operation in operations and call.is_ok
        )

    def messages(self, *operations: str) -> int:
        """Number of messages in answered calls."""
        return sum(
            sum(len(each["offsets"]) for each in call.answer.get("published", ()))
            + len(call.answer.get("messages", ()))
            for call in self.history.calls
            if call.operation in operations and call.is_ok
        )


def schedule(kills: int, random: Random) -> list[str]:
    blows = [name for name, (_, every) in BLOWS.items() for _ in range(-(-kills // every))]
    random.shuffle(blows)
    return blows


def run(kills: int, seed: int) -> Told:
    random, recorder = Random(seed), Recorder()
    rows = {name: Row() for name in [*BLOWS, _AT_THE_END]}
    struck: list[tuple[float, str]] = []
    with tempfile.TemporaryDirectory(prefix="queueber-") as name:
        folder = Path(name)
        server = shifted_server(folder / "data")
        server.start()
        try:
            with queueber.connect(server.address) as client:
                client.create_queue(TASKS, attempts_max=1000)
                create_topics(client)
                create_ordered_groups(client)
            with running_fleet(server.address, folder, random, recorder) as fleet:
                fleet.wait_until_at_work(_WAIT_SECONDS_MAX)
                target = Target(server, fleet, recorder)
                for blow in schedule(kills, random):
                    time.sleep(random.uniform(0.05, 0.4))
                    rows[blow].count += 1
                    rows[blow].wrong += filter(None, [BLOWS[blow][0](target)])
                    struck.append((monotonic_ms(), blow))
                    fleet.look_after()
                final, topics, moved = _come_to_rest(target)
            rows[_AT_THE_END].wrong += fleet.failures
            rows[_AT_THE_END].wrong += [f"exit code {code}" for code in [server.stop()] if code]
            with RocksStore(server.data_dir, read_only=True) as store:
                rows[_AT_THE_END].wrong += [str(each) for each in check_store(store)]
        finally:
            server.kill()
        history = merged([read_histories(folder), recorder.history])
    _judge(rows, struck, history, final, topics)
    results = [result.result for result in final[STEPS].results]
    found = {"the topic": moved, "the results": results}
    facts = TopicFacts(history, topics)
    rows[_AT_THE_END].wrong += map(str, pushes.moved(facts, MESSAGES, MOVERS, found))
    return Told(rows, history, len(moved))


def _come_to_rest(target: Target) -> tuple[Mapping[str, FinalState], FinalTopics, list[str]]:
    """Wait until the pools have done all tasks, shared groups and the bridge have had all messages,
    and all leases have expired. Returns also what was moved from one topic to another."""
    target.step_clock(target.shift_ms_max + HOUR_MS - target.shift_ms)
    target.fleet.dismiss(but=DRAINERS)
    with queueber.connect(target.server.address) as client:
        tasks = client.queue(TASKS)
        _wait_until_nothing_is_there(tasks, "ready", "delayed", "leased")
        messages = client.topic(MESSAGES, must_exist=True)
        for group in (SHARED, SUBSCRIBERS, BRIDGE):
            _wait_until_all_is_consumed(target, messages, group)
        target.fleet.look_after()
        target.fleet.dismiss()
        for queue in (QUEUE, STEPS):
            _wait_until_nothing_is_there(client.queue(queue), "delayed", "leased")
        queues = (QUEUE, TASKS, JOINED, STEPS, BRIDGED)
        final = {queue: read_final_state(client.queue(queue), BATCHES) for queue in queues}
        final[_GROUP] = read_final_group(messages.group(SHARED))
        cursors = [(MESSAGES, group) for group in (ORDERED, PUSHED, MOVERS)]
        topics = read_final_topics(client, [MESSAGES, COPIES], cursors)
        copied = read_final_topics(client, [MOVED], []).topics[MOVED].partitions[0]
        return final, topics, [message[1] for message in copied.messages]


def _wait_until_all_is_consumed(target: Target, topic: queueber.Topic, group: str) -> None:
    def left() -> int:
        target.fleet.look_after()
        return topic.describe_group(group).lag

    def told() -> str:
        info, stats = topic.describe_group(group), topic.group(group).stats()
        return f"{group}: {info}, {stats}, {target.fleet.failures}"

    _wait_until_none_is_left(left, told)


def _wait_until_nothing_is_there(queue: queueber.Queue, *states: str) -> None:
    def left() -> int:
        stats = queue.stats()
        return sum(getattr(stats, state) for state in states)

    _wait_until_none_is_left(left, lambda: f"{queue.name}: {queue.stats()}")


def _wait_until_none_is_left(left: Callable[[], int], told: Callable[[], str]) -> None:
    """Wait as long as it becomes less: a busy machine is slow, but does not stand still."""
    least, give_up_at = sys.maxsize, 0.0
    while count := left():
        now = time.monotonic()
        if count < least:
            least, give_up_at = count, now + _WAIT_SECONDS_MAX
        if now > give_up_at:
            raise AssertionError(f"does not come to rest: {told()}")
        time.sleep(0.1)


def _judge(
    rows: Mapping[str, Row],
    struck: Sequence[tuple[float, str]],
    history: History,
    final: Mapping[str, FinalState],
    topics: FinalTopics,
) -> None:
    def row_of(call: Call) -> Row:
        return rows[next((blow for at_ms, blow in struck if call.began_ms < at_ms), _AT_THE_END)]

    # A call counts for the fault that came during the call, or else for the next one.
    for call in history.calls:
        if call.queue:
            row_of(call).calls[call.outcome] += 1
    bridges = {BRIDGED: MESSAGES}
    told = with_adds(history, {_GROUP: MESSAGES}, bridges)
    violations = [*check(told, final), *check_topics(history, topics, final, bridges)]
    for violation in violations:
        last = max(violation.calls, key=lambda call: call.began_ms, default=None)
        row = rows[_AT_THE_END] if last is None else row_of(last)
        row.wrong.append(str(violation))
    rows[_AT_THE_END].wrong += undone(history, final[TASKS])


def undone(history: History, final: FinalState) -> Iterator[str]:
    """Tasks that were certainly added and that no pool has done. A dead one is not done either.

    No client cancels or purges a task, and its attempts last longer than a run.
    """
    done = {found.id for found in final.results}
    for call in history.calls:
        if call.operation == "add" and call.queue == TASKS and call.is_ok:
            for item in set(call.answer["ids"]) - done:
                found = final.items.get(item)
                state = "is not there" if found is None else f"is {found.state}"
                yield f"undone: {item} has no result, and {state}\n    {call}"
