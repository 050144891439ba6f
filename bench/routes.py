"""What a route costs: the life of an item in the engine alone, with and without routes.

Rounds of all kinds take turns, so that they meet the same machine. Times are CPU time of the
process, and the store never syncs. Whether queues without routes are as fast as in another commit
shows `python -m bench.quick COMMIT`.
"""

import argparse
import sys
import time
from pathlib import Path
from random import Random
from statistics import median

from bench.engine import EngineQueue
from bench.measure import scratch
from queueber.db.store.rocks import RocksStore
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.open import Engine, open_engine
from queueber.ids import IdSource
from queueber.model import EventPayload, On, QueueSettings, Source, TopicSettings

_CONTENTS = b'{"total": 250, "customer": {"tier": "gold"}, "note": "0123456789012345678901234"}'
_FILTER = "total >= 100 AND customer.tier = 'gold'"

_ELSEWHERE = "routes elsewhere"
"""The queue has none, and another one of the store has all kinds."""

KINDS: dict[str, tuple[tuple[On, ...], str, EventPayload]] = {
    "no routes": ((), "", EventPayload.KEY),
    _ELSEWHERE: (tuple(On), "", EventPayload.KEY),
    "insert, key": ((On.INSERT,), "", EventPayload.KEY),
    "insert, full": ((On.INSERT,), "", EventPayload.FULL),
    "insert, full, filtered": ((On.INSERT,), _FILTER, EventPayload.FULL),
    "all changes, key": (tuple(On), "", EventPayload.KEY),
    "all changes, diff": (tuple(On), "", EventPayload.DIFF),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.routes", description=__doc__)
    parser.add_argument("--dir", type=Path, default=Path("."), help="where the stores are made")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--items", type=int, default=20_000, help="of one round")
    parser.add_argument("--batch", type=int, default=100, help="items in one call")
    parser.add_argument("--only", choices=list(KINDS), action="append")
    given = parser.parse_args()
    kinds = given.only or list(KINDS)
    took: dict[str, list[float]] = {kind: [] for kind in kinds}
    with scratch(given.dir) as folder:
        for number in range(given.rounds):
            for kind in kinds:
                path = folder / f"{number}-{kind.replace(' ', '-').replace(',', '')}"
                took[kind].append(_round(path, kind, given.items, given.batch))
    plain = median(took[kinds[0]])
    for kind, rounds in took.items():
        us = median(rounds)
        print(f"{kind:24}{us:8.2f} µs an item  {us / plain:6.2f}")
    return 0


def _round(path: Path, kind: str, items: int, batch: int) -> float:
    """CPU time of adding, polling and removing an item, in µs."""
    store = RocksStore(path)
    try:
        queue = _routed(open_engine(store, IdSource(Random(1))), kind)
        began = time.process_time()
        for _ in range(items // batch):
            queue.add([_CONTENTS] * batch)
            queue.poll(batch)
            queue.remove()
        return (time.process_time() - began) / items * 1e6
    finally:
        store.close()


def _routed(engine: Engine, kind: str) -> EngineQueue:
    ons, where, payload = KINDS[kind]
    tx = Transaction(engine.kernel, 1, None)
    engine.queues.create(tx, "q", QueueSettings())
    engine.queues.create(tx, "other", QueueSettings())
    engine.topics.create(tx, "t", TopicSettings())
    tx.commit()
    for on in ons:
        tx = Transaction(engine.kernel, 1, None)
        source = Source("other" if kind == _ELSEWHERE else "q", on, where, payload=payload)
        engine.routes.add(tx, engine.topics.get("t", 1), source)
        tx.commit()
    return EngineQueue(engine, engine.queues.get("q"))


if __name__ == "__main__":
    sys.exit(main())
