"""The full reading at the end of a history."""

from faults.final_state import FinalState, FoundItem, FoundReceipt, FoundResult
from faults.history import printed
from faults.simulation.caller import receipt_told
from faults.simulation.roles import BATCHES
from queueber.engine.batches import receipt
from queueber.engine.results import read_results
from queueber.engine.state import Engine, QueueState
from queueber.errors import NotFound
from queueber.limits import MIB
from queueber.model import ItemState
from queueber.service.service import Service

_ALL = 1000


def final_state(service: Service, engine: Engine, queue: QueueState) -> FinalState:
    items: dict[str, FoundItem] = {}
    for state in ItemState:
        for found in service.peek(queue, state, b"", _ALL)[0]:
            items[found.id.hex()] = FoundItem(printed(found.contents), state.value, found.batch)
    results = read_results(engine, queue, 0, _ALL, MIB)
    stats = service.stats(queue)
    return FinalState(
        items,
        [FoundResult(r.offset, r.id.hex(), printed(r.result)) for r in results.results],
        results.missed,
        bool(queue.settings.result_bytes_max),
        _receipts(engine, queue),
        {
            "added": stats.added_total,
            "removed": stats.removed_total,
            "completed": stats.completed_total,
            "cancelled": stats.cancelled_total,
        },
        queue.settings.dedup_window_ms,
    )


def _receipts(engine: Engine, queue: QueueState) -> dict[str, FoundReceipt]:
    found: dict[str, FoundReceipt] = {}
    for batch in BATCHES:
        try:
            found[batch] = FoundReceipt(**receipt_told(receipt(engine, queue, batch)))
        except NotFound:
            continue
    return found
