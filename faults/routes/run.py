"""A run: a server is killed again and again under work on a routed queue, and then looked at."""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import queueber
from faults.routes.stored import check_routed
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.engine.open import open_engine
from queueber.ids import IdSource
from queueber.model import ItemState
from queueber.testing import ServerProcess

QUEUE, TOPIC = "work", "events"
_PARTITIONS = 3
_BETWEEN_KILLS_S = (0.1, 1.0)
_BACKLOG_MAX = 2000
_LONG_LEASE_S = 60


@dataclass(slots=True)
class Told:
    kills: int = 0
    events: int = 0
    items: int = 0
    wrong: list[str] = field(default_factory=list)


def run(folder: Path, kills: int, seed: int) -> Told:
    told, random = Told(), Random(seed)
    server = ServerProcess(folder / "data")
    server.start()
    try:
        with queueber.connect(server.address) as client:
            client.create_topic(TOPIC, partitions=_PARTITIONS)
            client.create_queue(QUEUE, attempts_max=3, backoff=[0.02])
            for on in ("insert", "update", "delete"):
                client.topic(TOPIC).add_source(QUEUE, on=on, payload="diff")
        is_over = threading.Event()
        threads = [
            threading.Thread(
                target=_guarded,
                args=(told.wrong, role, server.address, is_over, Random(random.random())),
            )
            for role in (_produce, _work, _work, _operate)
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in range(kills):
                time.sleep(random.uniform(*_BETWEEN_KILLS_S))
                server.kill()
                told.kills += 1
                server.start()
        finally:
            is_over.set()
            for thread in threads:
                thread.join()
    finally:
        if server.process is not None and server.process.poll() is None:
            server.stop()
    _look(folder / "data", told)
    return told


def _look(data_dir: Path, told: Told) -> None:
    store = RocksStore(data_dir)
    try:
        told.wrong += [f"store: {each}" for each in check_store(store)]
        engine = open_engine(store, IdSource(Random(0)))
        now_ms = int(time.time() * 1000)
        told.wrong += check_routed(engine, QUEUE, TOPIC, now_ms)
        topic = engine.topics.get(TOPIC, now_ms)
        told.events = sum(topic.next_offset(each) for each in range(topic.partitions))
        told.items = engine.queues.get(QUEUE).counters.added_total
    finally:
        store.close()


# --- those who work -------------------------------------------------------------------------------

Role = Callable[[str, threading.Event, Random], None]


def _guarded(
    wrong: list[str], role: Role, address: str, is_over: threading.Event, random: Random
) -> None:
    try:
        role(address, is_over, random)
    except Exception as error:  # noqa: BLE001  whatever it is, it is told
        wrong.append(f"{role.__name__}: {error!r}")


Step = Callable[[queueber.Queue, Random], None]


def _repeat(address: str, is_over: threading.Event, random: Random, step: Step) -> None:
    """Do a step again and again; what a kill interrupts is forgotten."""
    with queueber.connect(address) as client:
        queue = client.queue(QUEUE)
        while not is_over.is_set():
            with contextlib.suppress(queueber.QueueberError):
                step(queue, random)


def _produce(address: str, is_over: threading.Event, random: Random) -> None:
    def step(queue: queueber.Queue, random: Random) -> None:
        if queue.stats().ready > _BACKLOG_MAX:
            time.sleep(0.05)
            return
        delay = random.choice([0, 0, 0, 0.02])
        queue.add([random.randbytes(20) for _ in range(random.randint(1, 20))], delay=delay)

    _repeat(address, is_over, random, step)


def _work(address: str, is_over: threading.Event, random: Random) -> None:
    def step(queue: queueber.Queue, random: Random) -> None:
        lease = queue.poll(
            random.randint(1, 8), lease=random.choice([0.05, _LONG_LEASE_S]), wait=0.2
        )
        if not lease:
            return
        match random.randrange(6):
            case 0:
                lease.remove()
            case 1:
                lease.fail("it failed")
            case 2:
                lease.release()
            case 3:
                pass  # it expires, or is cancelled
            case _:
                lease.complete([b"done"] * len(lease))

    _repeat(address, is_over, random, step)


def _operate(address: str, is_over: threading.Event, random: Random) -> None:
    def step(queue: queueber.Queue, random: Random) -> None:
        time.sleep(0.05)
        match random.randrange(4):
            case 0:
                queue.redrive()
            case 1:
                queue.purge("dead")
            case 2:
                state = random.choice([ItemState.READY, ItemState.DELAYED, ItemState.LEASED])
                queue.cancel([each.id for each in queue.peek(state, limit=3).items])
            case _:
                queue.purge("leased")

    _repeat(address, is_over, random, step)
