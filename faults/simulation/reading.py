"""The full reading at the end of a simulated history."""

from collections.abc import Iterator

from faults import records
from faults.final_state import FinalState
from faults.simulation.roles import BATCHES
from queueber.engine.batches import receipt
from queueber.engine.results import read_results
from queueber.engine.state import Engine, QueueState
from queueber.errors import NotFound
from queueber.limits import MIB
from queueber.model import ItemState, Receipt
from queueber.service.service import Service

_ALL = 1000


def final_state(service: Service, engine: Engine, queue: QueueState) -> FinalState:
    results = read_results(engine, queue, 0, _ALL, MIB)
    return records.final_state(
        {state: service.peek(queue, state, b"", _ALL)[0] for state in ItemState},
        results.results,
        _receipts(engine, queue),
        service.stats(queue),
        first_offset=results.missed,
    )


def _receipts(engine: Engine, queue: QueueState) -> Iterator[Receipt]:
    for batch in BATCHES:
        try:
            yield receipt(engine, queue, batch)
        except NotFound:
            continue
