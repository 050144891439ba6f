"""Dead letters: finding them and taking them out. How they come in is in `charge.py`."""

from queueber.db.families import Family
from queueber.db.records.dead_letters import decode_dead
from queueber.db.records.keys import PREFIX_BYTES, prefix_end
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change


def first_dead(engine: Engine, queue: QueueState, limit: int) -> list[tuple[bytes, bytes]]:
    """The first dead letters in order of id: id and mark."""
    found = engine.store.scan(
        Family.DEAD, queue.prefix + queue.dead_low, prefix_end(queue.prefix), limit
    )
    return [(key[PREFIX_BYTES:], decode_dead(value)[2]) for key, value in found]


def drop_dead(queue: QueueState, change: Change, letters: list[tuple[bytes, bytes]]) -> None:
    change.batch.delete_many(Family.DEAD, [queue.prefix + item_id for item_id, _ in letters])
    change.counters.dead -= len(letters)
