"""Parks: what polls meet in a queue that caps items by an attribute."""

from collections.abc import Sequence
from typing import Any

from queueber.db.records.cutting import part, pick
from queueber.db.records.runs import (
    Entry,
    Run,
    at_time_of,
    mark_has_token,
    mark_holds_slot,
    with_slot,
)
from queueber.engine.caps.cap_keys import CapKeys
from queueber.engine.caps.key_changes import Tx, key_changes
from queueber.limits import CAP_MOVED_MAX


class Parks:
    """Splits what the polls of one call meet: what they get, and what is parked."""

    __slots__ = ("_changes", "_keys", "_parked", "_tx")

    def __init__(self, tx: Tx, keys: CapKeys) -> None:
        self._tx = tx
        self._keys = keys
        self._changes = key_changes(tx, keys)
        self._parked: list[tuple[bytes, Entry]] = []

    def __bool__(self) -> bool:
        """Whether there is something to park."""
        return bool(self._parked)

    @property
    def is_full(self) -> bool:
        """Whether a transaction parks no more."""
        return len(self._parked) >= CAP_MOVED_MAX

    def split(self, due: bytes, run: Run, blocks: Any) -> tuple[Sequence[Run], Sequence[Run]]:
        """The items that are leased, which take a slot if they have a cap key; and the others."""
        keys = self._keys
        holds_slot, has_token = mark_holds_slot(run.mark), mark_has_token(run.mark)
        if not keys.is_capped and not has_token:
            return [run], ()
        if holds_slot and keys.rate is None and not has_token:
            return [run], ()  # it has been counted
        digests = keys.of(run, blocks)
        if not any(digests):
            return [run], ()
        changes, now_ms = self._changes, self._tx.now_ms
        changes.read(digests)
        leased: list[int] = []
        waiting: list[int] = []
        for at, digest in enumerate(digests):
            if not digest:
                continue
            key = changes[digest]
            if holds_slot:
                may_be_leased = keys.lease_let_go(key, now_ms, has_token=has_token)
            else:
                may_be_leased = keys.lease(key, now_ms)
            (leased if may_be_leased else waiting).append(at)
        self._tx.counters.slots += -len(waiting) if holds_slot else len(leased)
        if len(leased) == run.count:
            return [run._replace(mark=with_slot(run.mark))], ()
        sizes = blocks.sizes(run)
        held = [each._replace(mark=with_slot(each.mark)) for each in pick(run, leased, sizes)[0]]
        plain = [at for at, digest in enumerate(digests) if not digest]
        kept = sorted([*held, *pick(run, plain, sizes)[0]])
        singles = [part(run, at, at + 1, sizes) for at in waiting]
        for at, single in zip(waiting, singles, strict=True):
            self._parked.append((digests[at], at_time_of(due, single)))
        return kept, singles

    def take_in(self) -> None:
        """Park what the polls met; it has left its place in the index by now."""
        if self._parked:
            self._changes.park(self._parked)
        if self.is_full:
            # There may be more that polls can have, behind what was parked.
            self._tx.due(self._tx.now_ms)
