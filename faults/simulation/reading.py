"""Reads the final state at the end of a simulated history."""

from collections.abc import Iterator

from faults import records
from faults.final_state import FinalState
from faults.simulation.roles import BATCHES
from queueber.engine.open import Engine
from queueber.engine.queue.queue_state import QueueState, live_view
from queueber.engine.queue.results import results_of
from queueber.errors import NotFound
from queueber.limits import MIB
from queueber.model import ItemInfo, ItemOptions, ItemState, Receipt
from queueber.service.service import Service
from queueber.service.session import QueueHandle

_ALL = 1000


def final_state(
    service: Service, engine: Engine, queue: QueueHandle, read_at_ms: float
) -> FinalState:
    results = results_of(live_view(engine.store, queue.state), 0, _ALL, MIB)
    return records.final_state(
        {state: list(items_of(service, queue, state)) for state in ItemState},
        results.results,
        {batch: _receipt(queue.state, batch) for batch in BATCHES},
        service.queues.stats(queue),
        first_offset=results.missed,
        read_at_ms=read_at_ms,
    )


def items_of(service: Service, queue: QueueHandle, state: ItemState) -> Iterator[ItemInfo]:
    after = b""
    while True:
        items, after = service.items.peek(queue, state, after, 0)
        yield from items
        if not after:
            return


def options_of(item: ItemInfo) -> ItemOptions:
    """What an item has of its own; of one that expires nothing is said."""
    return ItemOptions(item.attempts_max, tuple(item.backoff_ms), item.timeout_ms)


def _receipt(queue: QueueState, batch: str) -> Receipt | None:
    try:
        return queue.batches.receipt(batch)
    except NotFound:
        return None
