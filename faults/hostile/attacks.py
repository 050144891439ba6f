"""The attacks, one kind of client each."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from typing import Any

from faults.hostile.fuzz import KINDS, conversation
from faults.hostile.messages import bootstrap, call, finish, framed
from faults.hostile.raw import Raw
from queueber.tls import TlsOptions

MIB = 1 << 20
LARGE_ITEM = 7 * MIB // 2
BIG = "hostile-big"
"""A queue with eight items of 3.5 MiB: one answer holds all of them."""

_ASKS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("peek", {}),
    ("poll", {"req": {"numItems": 8, "noWait": True, "leaseValidityMs": 1}}),
    ("pollMany", {"req": {"counts": [8], "leaseValidityMs": 1}}),
    ("poll", {"req": {"numItems": 8, "noWait": True, "leaseValidityMs": 1, "packed": True}}),
)
"""Requests that return all of them."""

_WAIT = {"leaseValidityMs": 60_000, "timeoutMs": 300_000}


@dataclass(frozen=True, slots=True)
class Task:
    address: str
    random: Random
    seconds: float
    """The time limit of an attack."""
    tls: TlsOptions | None = None

    def connect(self, *, receive_bytes: int = 0) -> Raw:
        return Raw(self.address, receive_bytes=receive_bytes, tls=self.tls)

    def goes_on(self) -> Iterator[int]:
        """Yield rounds until the time is up."""
        ends_at = time.monotonic() + self.seconds
        number = 0
        while time.monotonic() < ends_at:
            yield number
            number += 1


def _fuzz(make: Callable[[Random], bytes]) -> Callable[[Task], int]:
    def send(task: Task) -> int:
        count = 0
        for count in task.goes_on():  # noqa: B007  how many there were
            data = make(task.random)
            with task.connect() as raw:
                at = task.random.randrange(len(data)) if data else 0
                if raw.send(data[:at]) and raw.send(data[at:]):
                    raw.is_hung_up_on(0.005)
                if task.random.random() < 0.3:
                    raw.reset()
        return count

    return send


def silent(task: Task) -> int:
    """Connections that send nothing, or half a word."""
    with ExitStack() as stack:
        for number in range(500):
            raw = stack.enter_context(task.connect())
            raw.send(bootstrap()[: number % 30])
        time.sleep(task.seconds)
    return 500


def declared(task: Task) -> int:
    """Messages that declare the largest size, and of which little is sent."""
    with ExitStack() as stack:
        for _ in range(200):
            raw = stack.enter_context(task.connect())
            raw.send(bootstrap() + framed(bytes(4096), declared=[16 * MIB]))
        time.sleep(task.seconds)
    return 200


def unfinished(task: Task) -> int:
    """Messages of the largest size, of which nearly all is sent: 3 GB together."""
    data = framed(bytes(100 * MIB), declared=[13 * MIB])
    with ExitStack() as stack:
        streams = [stack.enter_context(task.connect()) for _ in range(30)]
        for raw in streams:
            raw.send_some(data, max(0.2, task.seconds / len(streams)))
        time.sleep(task.seconds / 2)
    return len(streams)


def never_reads(task: Task) -> int:
    """Requests 28 MB repeatedly, and reads nothing."""
    with ExitStack() as stack:
        streams = [stack.enter_context(task.connect(receive_bytes=4096)) for _ in range(4)]
        for raw in streams:
            raw.send(bootstrap() + call(1, "queue", name=BIG))
        asked = 0
        for number in task.goes_on():
            for raw in streams:
                how, params = _ASKS[number % len(_ASKS)]
                asked += raw.send_some(call(number + 2, how, of=1, **params), 0.05) > 0
            time.sleep(0.002)
    return asked


def reads_slowly(task: Task) -> int:
    """Reads a kilobyte of its 28 MB now and then."""
    with ExitStack() as stack:
        streams = [stack.enter_context(task.connect(receive_bytes=4096)) for _ in range(20)]
        for raw in streams:
            raw.send(bootstrap() + call(1, "queue", name=BIG))
            raw.send(b"".join(call(number, "peek", of=1) for number in range(2, 12)))
        for _ in task.goes_on():
            for raw in streams:
                raw.is_hung_up_on(0.001)
            time.sleep(0.05)
    return 10 * len(streams)


def cancelled(task: Task) -> int:
    """Calls that are cancelled, or whose connection ends, at every point."""
    count = 0
    for number in task.goes_on():
        data = conversation(task.random)
        with task.connect() as raw:
            if number % 2:
                raw.send(data[: number % (len(data) + 1)])
            else:
                wait = call(90, "poll", req=_WAIT) + call(91, "poll", req={**_WAIT, "bound": True})
                raw.send(data + wait + finish(90) + finish(number % 7))
            if number % 3:
                time.sleep(task.random.choice([0, 0.0005, 0.002]))
            raw.reset()
        count += 1
    return count


def many_connections(task: Task) -> int:
    """As many connections as the server accepts, each with a call that waits."""
    count = 0
    with ExitStack() as stack:
        for _ in task.goes_on():
            if count >= 10_000:
                time.sleep(0.05)
                continue
            raw = stack.enter_context(task.connect())
            raw.send(bootstrap() + call(1, "queue", name="hostile-empty"))
            raw.send(call(2, "poll", of=1, req=_WAIT))
            count += 1
    return count


def comes_and_goes(task: Task) -> int:
    """Connects and disconnects as fast as possible."""
    count = 0
    for count in task.goes_on():  # noqa: B007  how many there were
        task.connect().reset()
    return count


def floods(task: Task) -> int:
    """Ten connections that send calls without waiting for answers."""
    counts = [0] * 10

    def flood(at: int) -> None:
        with task.connect() as raw:
            raw.send(bootstrap())
            _read_all(raw)
            question = 1
            for _ in task.goes_on():
                several = range(question, question + 50)
                data = b"".join(call(each, "stats") + finish(each) for each in several)
                if not raw.send(data):
                    return
                counts[at] += 50
                question += 50

    threads = [threading.Thread(target=flood, args=(at,), daemon=True) for at in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(task.seconds + 15)
    return sum(counts)


def waits_with_ballast(task: Task) -> int:
    """Calls that wait, each in a message of 8 MB that is mostly empty: 2.4 GB together."""
    empty = bytes(8 * MIB)
    count = 0
    with ExitStack() as stack:
        streams = [stack.enter_context(task.connect()) for _ in range(10)]
        for raw in streams:
            raw.send(bootstrap())
            for question in range(1, 31):
                wait = call(question, "poll", req=_WAIT)
                count += raw.send_some(framed(wait[8:], empty), 2) > 0
        time.sleep(task.seconds)
    return count


def never_finishes(task: Task) -> int:
    """Reads its answers, but never sends `Finish`."""
    return _ask_on(task, lambda question: call(question, "stats"))


def hoards_queues(task: Task) -> int:
    """Requests the same queue repeatedly, and releases no capability."""
    return _ask_on(task, lambda question: call(question, "queue", name="hostile-empty"))


def _ask_on(task: Task, ask: Callable[[int], bytes]) -> int:
    """Send calls, twenty at a time, and read their answers; returns how many."""
    with task.connect() as raw:
        raw.send(bootstrap())
        _read_all(raw)
        question = 1
        for _ in task.goes_on():
            if not raw.send(b"".join(ask(question + n) for n in range(20))):
                break
            question += 20
    return question


def _read_all(raw: Raw) -> None:
    """Read and discard all bytes, in a thread that ends with the connection."""
    threading.Thread(target=lambda: [None for _ in raw.messages()], daemon=True).start()


def never_takes(task: Task) -> int:
    """Subscribes to 28 MB again and again, and reads no delivery."""
    wanted = {"credits": 1_000_000}
    count = 0
    with ExitStack() as stack:
        streams = [stack.enter_context(task.connect(receive_bytes=4096)) for _ in range(4)]
        for raw in streams:
            raw.send(bootstrap() + call(1, "topic", name=BIG))
        for number in task.goes_on():
            for raw in streams:
                asked = call(number + 2, "Topic.subscribe", of=1, req=wanted)
                count += raw.send_some(asked, 0.05) > 0
            time.sleep(0.002)
    return count


def never_answers(task: Task) -> int:
    """Reads all that its subscriptions are sent, and answers no delivery."""
    wanted = {"credits": 1_000_000, "heartbeatMs": 100}
    return _ask_on(
        task,
        lambda question: (
            call(question, "topic", name="hostile-topic")
            if question == 1
            else call(question, "Topic.subscribe", of=1, req=wanted)
        ),
    )


def takes_over(task: Task) -> int:
    """Consumers of an ordered group that take over from each other as fast as possible."""
    wanted = {"group": "hostile", "credits": 10}
    return _ask_on(
        task,
        lambda question: (
            call(question, "topic", name="hostile-topic")
            if question == 1
            else call(question, "Topic.subscribe", of=1, req=wanted)
        ),
    )


def keeps_answers(task: Task) -> int:
    """Makes the server keep answers of 28 MB instead of sending them, as the protocol allows."""
    with task.connect() as raw:
        raw.send(bootstrap() + call(1, "queue", name=BIG))
        count = 0
        for number in task.goes_on():
            if not raw.send(call(number + 2, "peek", of=1, to_yourself=True)):
                break
            count += 1
            time.sleep(0.01)
    return count


@dataclass(frozen=True, slots=True)
class Attack:
    run: Callable[[Task], int]
    growth_mb_max: float = 300.0
    """How much the server's memory may grow during the attack."""


ATTACKS: dict[str, Attack] = {
    **{f"fuzz: {name}": Attack(_fuzz(make)) for name, make in KINDS.items()},
    "silent": Attack(silent),
    "declared": Attack(declared),
    "unfinished": Attack(unfinished, 1400),
    "never reads": Attack(never_reads, 1400),
    "reads slowly": Attack(reads_slowly, 2200),
    "cancelled": Attack(cancelled),
    "many connections": Attack(many_connections, 1000),
    "comes and goes": Attack(comes_and_goes),
    "floods": Attack(floods),
    "waits with ballast": Attack(waits_with_ballast),
    "never finishes": Attack(never_finishes),
    "hoards queues": Attack(hoards_queues),
    "keeps answers": Attack(keeps_answers, 600),
    "never takes": Attack(never_takes, 1400),
    "never answers": Attack(never_answers),
    "takes over": Attack(takes_over),
}
