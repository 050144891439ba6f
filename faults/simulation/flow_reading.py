"""Reads what became of workflows at the end of a simulated history, and checks it."""

from collections.abc import Sequence

from faults.history import Call
from faults.rules.callbacks import called_back
from faults.rules.waits import leased_in_order
from faults.simulation.flow_roles import CALLED_BACK, Flows, options_of_batch
from faults.simulation.reading import items_of, options_of
from faults.simulation.server import Server
from queueber.errors import NotFound
from queueber.model import ItemOptions, ItemState, Receipt, callback_receipt


def look_at_flows(server: Server, queue: str, flows: Flows, calls: Sequence[Call]) -> list[str]:
    """What is wrong with the callbacks of a queue, and with items that wait for others."""
    found: list[Receipt] = []
    told: dict[str, ItemOptions] = {}
    if CALLED_BACK in server.service.shell.engine.queues:
        items = list(items_of(server.service, server.handle(CALLED_BACK), ItemState.READY))
        found = [callback_receipt(item.attributes) for item in items]
        told = {each.batch: options_of(item) for each, item in zip(found, items, strict=True)}
    receipts: dict[str, Receipt] = {}
    for asked in flows.asked:
        try:
            receipt = server.handle(queue).state.batches.receipt(asked.batch)
        except NotFound:
            continue
        receipts[asked.batch] = receipt
    wrong = [*called_back(flows.asked, found, receipts), *leased_in_order(flows.waiters, calls)]
    wrong += [
        f"callback of {batch!r}: an item with {options}"
        for batch, options in told.items()
        if options != options_of_batch(batch)
    ]
    if due := server.handle(queue).state.counters.waits_due:
        wrong.append(f"stuck: {due} notes of what items wait for")
    return wrong
