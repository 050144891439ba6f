"""What the four families of states say: which runs are ready, delayed, leased or dead."""

from typing import NamedTuple

from queueber.db.families import Family
from queueber.db.records.dead_letters import decode_dead
from queueber.db.records.keys import LEVEL_BYTES, Due
from queueber.db.records.leases import decode_lease
from queueber.db.records.remembered import ids_digest
from queueber.db.records.runs import (
    Run,
    decode_entry,
    decode_held,
)
from queueber.engine.queue.lifecycle import DeathReason
from queueber.ids import ItemId

STATES = (Family.VISIBILITY_INDEX, Family.DELAYED, Family.LEASES, Family.DEAD)


class StateRun(NamedTuple):
    """A run, and what its entry says of it."""

    family: Family
    run: Run
    due: Due | None = None
    """When it is visible, and its last id, if it is ready or delayed."""
    level: int = 0
    """Where it is ready."""
    died: tuple[int, int] = (0, 0)
    """When and why it died, if it is dead."""


def read_states(family: Family, key: bytes, value: bytes) -> list[StateRun]:
    """The run of an entry; of a lease, each run that it holds. Raises errors of many kinds."""
    if family is Family.LEASES:
        return [StateRun(family, run) for run in decode_held(decode_lease(value)[1])]
    if family is Family.DEAD:
        died_at_ms, reason, run = decode_dead(key, value)
        DeathReason(reason)  # raises if there is no such reason
        return [StateRun(family, run, died=(died_at_ms, reason))]
    level = 0
    if family is Family.VISIBILITY_INDEX:
        level, key = key[0], key[LEVEL_BYTES:]
    due, run = decode_entry(key, value)
    return [StateRun(family, run, due, level)]


def block_of(run: Run) -> ItemId | None:
    """The last id of the run's block; None if no block can have such a run."""
    return run.block if 0 < run.count <= run.span - run.at else None


class LiveItems(NamedTuple):
    """The items of a batch that are not dead."""

    items: int = 0
    digest: int = 0

    def plus(self, run: Run) -> "LiveItems":
        return LiveItems(self.items + run.count, self.digest + ids_digest(run.last, run.count))


NO_ITEMS = LiveItems()
