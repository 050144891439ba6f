"""Find the rows of a load that are duplicates, of stored items or of each other, by their keys.

A claim is the key and the id of a row. The search reads the claims of all parts once, in order of
key and then of id; of rows with the same key the first one stays. Until the load is committed,
nobody else adds or deletes a key of the queue.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from queueber.db.bulk.staged_files import walk_files
from queueber.db.families import Family
from queueber.db.records.keys import DIGEST_BYTES, prefix_end
from queueber.db.records.loads import Dropped, LoadRecord
from queueber.db.records.remembered import encode_key_entry, known_item
from queueber.db.store.contract import ScanIncomplete, Store
from queueber.engine.queue.queue_state import QueueState
from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.limits import LOAD_DUPLICATES_MAX, LOOKAHEAD_SKIPS_MAX

_SLICE = 500
"""How many claims a step reads: about a millisecond."""


@dataclass(slots=True)
class DuplicateSearch:
    store: Store
    queue: QueueState
    load: LoadRecord
    now_ms: int
    dropped: list[Dropped] = field(default_factory=list)
    claims: int = 0

    def run(self, claims: Sequence[Path], scratch: Path) -> Iterator[None]:
        """Search, a step at a time; after the last one `dropped` is complete."""
        entries = walk_files(claims, scratch)
        has_keys = self._queue_has_keys()
        head = self.load.id_head
        forget_at_ms = self.load.started_at_ms + self.load.dedup_window_ms
        last_digest, first_id = b"", b""
        while chunk := [
            (key[:DIGEST_BYTES], key[DIGEST_BYTES:]) for key, _ in islice(entries, _SLICE)
        ]:
            self.claims += len(chunk)
            existing = self._look_up([digest for digest, _ in chunk]) if has_keys else {}
            for digest, item_id in chunk:
                if not item_id.startswith(head):
                    raise InvalidArgument(f"files: claims has {item_id.hex()}, no id of the load")
                if digest in existing:
                    self.dropped.append(Dropped(item_id, digest, existing[digest]))
                elif digest == last_digest:
                    entry = encode_key_entry(first_id, forget_at_ms)
                    self.dropped.append(Dropped(item_id, digest, entry))
                else:
                    last_digest, first_id = digest, item_id
            self._check_limit()
            yield

    def _queue_has_keys(self) -> bool:
        prefix = self.queue.prefix
        try:
            first = self.store.first_key(
                Family.KEYS, prefix, prefix_end(prefix), skips_max=LOOKAHEAD_SKIPS_MAX
            )
        except ScanIncomplete:
            return True
        return first is not None

    def _look_up(self, digests: list[bytes]) -> dict[bytes, bytes]:
        prefix = self.queue.prefix
        distinct = list(dict.fromkeys(digests))
        found = self.store.get_many(Family.KEYS, [prefix + digest for digest in distinct])
        return {
            digest: entry
            for digest, entry in zip(distinct, found, strict=True)
            if entry is not None and known_item(entry, self.now_ms) is not None
        }

    def _check_limit(self) -> None:
        if len(self.dropped) > LOAD_DUPLICATES_MAX:
            raise ResourceExhausted(
                f"key: more than {LOAD_DUPLICATES_MAX} rows, the limit of a load, have a key that "
                f"is there already in queue {self.queue.name!r}, or twice in the load; leave them "
                "out, or add these rows one by one (in Spark: method=rpc)"
            )
