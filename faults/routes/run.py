"""A run: a server is killed again and again under work on a routed queue, and then looked at."""

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import queueber
from faults.facts import Facts
from faults.final_state import FinalState
from faults.recorder import Recorder
from faults.routes.mirrors import Change, Term, Way, check_mirror
from faults.routes.stored import check_routed, read_messages
from faults.routes.work import QUEUE, ROLES, guarded
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.engine.open import open_engine
from queueber.ids import IdSource
from queueber.model import EventPayload, On
from queueber.testing import ServerProcess

TOPIC = "events"
_BETWEEN_KILLS_S = (0.1, 1.0)
_SLACK_MS = 1.0

_WHERE, _PARTITION_BY = "n >= 50 AND attributes.kind = 'a'", "customer"


def _is_chosen(change: Change) -> bool:
    """`_WHERE`, in Python."""
    attributes = change.born.get("attributes") or {}
    return _fields(change)["n"] >= 50 and attributes.get("kind") == "a"


def _customer(change: Change) -> str:
    return str(_fields(change)["customer"])


def _fields(change: Change) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(change.born["contents"])
    return found


class Mirror(NamedTuple):
    """A topic beside the one that gets the differences of all changes."""

    partitions: int
    payloads: Mapping[On, EventPayload]
    where: str = ""
    partition_by: str = ""

    @property
    def terms(self) -> list[Term]:
        """Each source was there before the first item."""
        return [
            Term(QUEUE, on.value, self._way(payload.value)) for on, payload in self.payloads.items()
        ]

    def _way(self, payload: str) -> Way:
        return Way(payload, _is_chosen, _customer) if self.where else Way(payload)


MIRRORS = {
    "contents": Mirror(1, dict.fromkeys(On, EventPayload.FULL)),
    "chosen": Mirror(
        2,
        {
            On.INSERT: EventPayload.FULL, On.UPDATE: EventPayload.KEY, On.DELETE: EventPayload.DIFF
        },
        _WHERE,
        _PARTITION_BY,
    ),
    "ends": Mirror(2, {On.DELETE: EventPayload.KEY}),
}  # fmt: skip
_PARTITIONS = 3


@dataclass(slots=True)
class Told:
    kills: int = 0
    events: int = 0
    items: int = 0
    mirrored: Counter[str] = field(default_factory=Counter)
    """The events of the other topics."""
    wrong: list[str] = field(default_factory=list)


def run(folder: Path, kills: int, seed: int) -> Told:
    told, random, recorder = Told(), Random(seed), Recorder()
    server = ServerProcess(folder / "data")
    server.start()
    try:
        with queueber.connect(server.address) as client:
            _create(client)
        is_over = threading.Event()
        threads = [
            threading.Thread(
                target=guarded,
                args=(told.wrong, role, f"{role.__name__} {number}", server.address, recorder,
                      is_over, Random(random.random())),
            )
            for number, role in enumerate(ROLES)
        ]  # fmt: skip
        for thread in threads:
            thread.start()
        try:
            for _ in range(kills):
                time.sleep(random.uniform(*_BETWEEN_KILLS_S))
                with recorder.call("kills", "restart", queue=""):
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
    _look(folder / "data", told, Facts(recorder.history.of(QUEUE), FinalState(), _SLACK_MS))
    return told


def _create(client: queueber.Client) -> None:
    client.create_queue(QUEUE, attempts_max=3, backoff=[0.02])
    client.create_topic(TOPIC, partitions=_PARTITIONS)
    for on in On:
        client.topic(TOPIC).add_source(QUEUE, on=on, payload=EventPayload.DIFF)
    for name, mirror in MIRRORS.items():
        client.create_topic(name, partitions=mirror.partitions)
        for on, payload in mirror.payloads.items():
            client.topic(name).add_source(
                QUEUE,
                on=on,
                payload=payload,
                where=mirror.where,
                partition_by=mirror.partition_by,
            )


def _look(data_dir: Path, told: Told, facts: Facts) -> None:
    store = RocksStore(data_dir)
    try:
        told.wrong += [f"store: {each}" for each in check_store(store)]
        engine = open_engine(store, IdSource(Random(0)))
        now_ms = int(time.time() * 1000)
        told.wrong += check_routed(engine, QUEUE, TOPIC, now_ms, facts)
        truth = read_messages(engine, engine.topics.get(TOPIC, now_ms))
        told.events = len(truth)
        told.items = engine.queues.get(QUEUE).counters.added_total
        for name, mirror in MIRRORS.items():
            found = read_messages(engine, engine.topics.get(name, now_ms))
            told.mirrored.update(f"{name}, {each.own['payload']}" for each in found)
            told.wrong += check_mirror(name, truth, found, mirror.partitions, mirror.terms)
    finally:
        store.close()
