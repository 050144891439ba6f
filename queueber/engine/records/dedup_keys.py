"""Keys: within a queue's window, a second add with the same key stores nothing.

The window begins with the add that was stored, and does not care what became of its item. A window
of 0 keeps no keys.
"""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.records.dedup_keys import decode_key_entry, encode_key_entry
from queueber.db.records.keys import text_digest
from queueber.db.records.retention import FORGET_KEY
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change
from queueber.engine.records.reminders import drop_forget_entry, remember_to_forget
from queueber.errors import Unavailable


class Keys:
    """The keys of one add: which of its items are to be stored."""

    def __init__(self, engine: Engine, queue: QueueState, keys: Sequence[str], now_ms: int) -> None:
        self._queue = queue
        self._window_ms = queue.settings.dedup_window_ms
        self._now_ms = now_ms
        self._digests = [text_digest(key) if key else b"" for key in keys]
        self.firsts: list[int | bytes | None] = [None] * len(keys)
        """For each item: None when it is to be stored; else whose duplicate it is, the id of an
        item that is there or the place of one in the same call."""
        self._overdue: dict[bytes, int] = {}
        if self._window_ms:
            if queue.keys_are_frozen:
                raise Unavailable(
                    f"a load with keys is being committed in queue {queue.name!r}; send the call "
                    "again in a moment"
                )
            self._look_up(engine)

    def _look_up(self, engine: Engine) -> None:
        prefix = self._queue.prefix
        distinct = list({digest: None for digest in self._digests if digest})
        found = engine.store.get_many(Family.KEYS, [prefix + digest for digest in distinct])
        known: dict[bytes, int | bytes] = {}
        for digest, entry in zip(distinct, found, strict=True):
            if entry is not None:
                item_id, forget_at_ms = decode_key_entry(entry)
                if forget_at_ms > self._now_ms:
                    known[digest] = item_id
                else:
                    self._overdue[digest] = forget_at_ms
        for place, digest in enumerate(self._digests):
            if digest:
                self.firsts[place] = known.get(digest)
                known.setdefault(digest, place)

    def store(self, change: Change, stored: list[tuple[int, bytes]]) -> None:
        """Remember the keys of the items that are stored, given as place and id."""
        if not self._window_ms:
            return
        queue, forget_at_ms = self._queue, self._now_ms + self._window_ms
        for place, item_id in stored:
            digest = self._digests[place]
            if not digest:
                continue
            if digest in self._overdue:
                drop_forget_entry(queue, change, self._overdue[digest], digest)
            entry = encode_key_entry(item_id, forget_at_ms)
            change.batch.put(Family.KEYS, queue.prefix + digest, entry)
            remember_to_forget(queue, change, forget_at_ms, digest, FORGET_KEY)
