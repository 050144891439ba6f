"""What a store of format 5 says of each of its items, to compare with what format 4 said."""

from typing import NamedTuple

from queueber.db.families import Family
from queueber.db.records.blocks import Block, unpack_attributes
from queueber.db.records.dead_letters import decode_dead
from queueber.db.records.keys import is_where_its_id_says, split_due_part
from queueber.db.records.leases import decode_lease
from queueber.db.records.runs import (
    Run,
    decode_held,
    decode_mark,
    decode_run,
)
from queueber.db.store.contract import Store
from queueber.ids import ids_up_to
from tests.support.format_4 import Item, Queue


class Contents(NamedTuple):
    """What the blocks of a queue hold of an item, and where."""

    item: tuple[bytes, str, dict[str, str]]
    block: bytes
    at: int
    has_details: bool


def entries(store: Store, family: Family, prefix: bytes) -> list[tuple[bytes, bytes]]:
    """Those whose key begins with the prefix, without it."""
    found = store.walk(family, prefix, prefix + b"\xff" * 64)
    return [(key[len(prefix) :], value) for key, value in found]


def read_blocks(store: Store, prefix: bytes) -> dict[bytes, Contents]:
    found: dict[bytes, Contents] = {}
    for last, value in entries(store, Family.ITEMS, prefix):
        block = Block(value)
        keys, attributes = block.details(0, block.span)
        contents = block.contents(0, block.span)
        for at, item_id in enumerate(ids_up_to(last, block.span)):
            item = (contents[at], keys[at].decode(), unpack_attributes(attributes[at]))
            found[item_id] = Contents(item, last, at, block.has_details)
    return found


class ReadQueue:
    """Reads the items of a queue from its runs, and checks each run against its block."""

    def __init__(self, store: Store, queue: Queue) -> None:
        self._store = store
        self._prefix = queue.prefix
        self._blocks = read_blocks(store, queue.prefix)
        self._places = dict(entries(store, Family.PLACES, queue.prefix))
        self._items: list[Item] = []
        self.leases = self._read()
        assert self._places == {}, "every place has its run"
        assert len(self._items) == len(self._blocks)
        self.items = sorted(self._items, key=lambda item: item.item_id)

    def _read(self) -> list[tuple[bytes, int, list[Item]]]:
        for key, value in entries(self._store, Family.VISIBILITY_INDEX, self._prefix):
            for item in self._waiting("ready", key[1:], value):
                assert item.level == key[0]
        for key, value in entries(self._store, Family.DELAYED, self._prefix):
            self._waiting("delayed", key, value)
        for key, value in entries(self._store, Family.DEAD, self._prefix):
            died_at_ms, reason, run = decode_dead(key, value)
            self._take("dead", run, died=(died_at_ms, reason))
        leases, holders = [], []
        for lease_id, value in entries(self._store, Family.LEASES, self._prefix):
            expires_at_ms, held = decode_lease(value)
            runs = decode_held(held)
            holders += [run.block + lease_id for run in runs]
            items = [item for run in runs for item in self._take("leased", run)]
            leases.append((lease_id, expires_at_ms, items))
        stored = entries(self._store, Family.HOLDERS, self._prefix)
        assert stored == [(key, b"") for key in sorted(set(holders))]
        return leases

    def _waiting(self, state: str, due: bytes, value: bytes) -> list[Item]:
        at_ms, last = split_due_part(due)
        if not is_where_its_id_says(due):
            assert self._places.pop(last) == due[:8]
        return self._take(state, decode_run(last, value), visible_at_ms=at_ms)

    def _take(
        self, state: str, run: Run, visible_at_ms: int = 0, died: tuple[int, int] = (0, 0)
    ) -> list[Item]:
        mark = decode_mark(run.mark)
        taken = []
        for at, item_id in enumerate(run.ids, run.at):
            found = self._blocks[item_id]
            assert (found.block, found.at, found.has_details) == (run.block, at, mark.has_details)
            contents, key, attributes = found.item
            taken.append(
                Item(
                    item_id,
                    contents,
                    state,
                    visible_at_ms,
                    key,
                    attributes,
                    mark.batch,
                    mark.attempts,
                    mark.group_max,
                    mark.priority,
                    died,
                )
            )
        assert sum(item.size for item in taken) == run.size
        self._items += taken
        return taken
