"""Reminders: the entries of the family `forget`, each a thing to look at when its time comes."""

from queueber.db.families import Family
from queueber.db.records.keys import due_part
from queueber.engine.kernel.state import QueueState
from queueber.engine.kernel.transaction import Change


def remember_to_forget(
    queue: QueueState, change: Change, at_ms: int, reference: bytes, kind: bytes
) -> None:
    change.batch.put(Family.FORGET, queue.prefix + due_part(at_ms, reference), kind)
    change.counters.forgets += 1
    change.counters.forget_due_ms = min(change.counters.forget_due_ms, at_ms)
    change.look_at(at_ms)


def drop_forget_entry(queue: QueueState, change: Change, at_ms: int, reference: bytes) -> None:
    change.batch.delete(Family.FORGET, queue.prefix + due_part(at_ms, reference))
    change.counters.forgets -= 1
