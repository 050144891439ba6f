"""What a subscriber that is not our client would do: read whole deliveries, and write outcomes."""

from typing import Any

from queueber.model import Delivery, Settlement
from queueber.wire.messages import read_slice


def read_delivery(source: Any) -> Delivery:
    return Delivery(
        read_slice(source.slice),
        source.lease,
        list(source.attempts) if len(source.attempts) else (),
        source.missed,
    )


def write_settlement(target: Any, settlement: Settlement) -> None:
    target.lease = settlement.lease
    target.partitions = list(settlement.partitions)
    target.offsets = list(settlement.offsets)
    target.outcome = settlement.outcome.value
    target.error = settlement.error
    if settlement.delay_ms is not None:
        target.delayMs = settlement.delay_ms
