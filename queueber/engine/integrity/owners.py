"""Whose every number is: that of a queue, a topic, a log of a topic, or a group.

All keys but names and the agenda begin with a number, and which families may have entries of it
depends on what has the number. The memory that this takes grows with the number of topics.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import IntFlag

from queueber.db.families import (
    GROUP_FAMILIES,
    LOG_FAMILIES,
    QUEUE_FAMILIES,
    TOPIC_FAMILIES,
    Family,
)
from queueber.db.records import keys
from queueber.db.records.callbacks import CALLBACK_KEY_BYTES
from queueber.db.records.loads import LOAD_KEY_BYTES, PART_KEY_BYTES
from queueber.db.records.routes import ROUTE_KEY_BYTES
from queueber.db.records.schemas import SCHEMA_KEY_BYTES
from queueber.db.records.topics import decode_group, decode_topic
from queueber.db.records.waits import NOTE_KEY_BYTES, WAITED_FOR_KEY_BYTES
from queueber.db.store.contract import Store
from queueber.engine.integrity.queue_entries import Violation, readable
from queueber.limits import (
    GROUP_NAME_BYTES_MAX,
    ID_BYTES,
    READER_NAME_BYTES_MAX,
    SCHEDULE_NAME_CHARS_MAX,
)
from queueber.model import GroupKind

LAST_KEY = b"\xff" * 300
"""Greater than every key, also than the name of a topic."""


def _exactly(width: int) -> range:
    return range(width, width + 1)


KEY_WIDTHS: Mapping[Family, Sequence[int]] = {
    Family.QUEUES: _exactly(0),
    Family.COUNTERS: _exactly(0),
    Family.ITEMS: _exactly(ID_BYTES),
    Family.LEFTOVERS: _exactly(ID_BYTES),
    Family.VISIBILITY_INDEX: _exactly(keys.LEVEL_BYTES + keys.DUE_BYTES),
    Family.DELAYED: _exactly(keys.DUE_BYTES),
    Family.PLACES: _exactly(ID_BYTES),
    Family.DEAD: _exactly(ID_BYTES),
    Family.LEASES: _exactly(ID_BYTES),
    Family.LEASE_EXPIRY: _exactly(keys.DUE_BYTES),
    Family.HOLDERS: _exactly(2 * ID_BYTES),
    Family.ATTEMPTS: _exactly(ID_BYTES),
    Family.ITEM_OPTIONS: _exactly(ID_BYTES),
    Family.ITEM_EXPIRY: _exactly(keys.DUE_BYTES),
    Family.KEYS: _exactly(keys.DIGEST_BYTES),
    Family.PRODUCERS: range(keys.DIGEST_BYTES, keys.DIGEST_BYTES + 9),
    Family.BATCHES: _exactly(4),
    Family.BATCH_NAMES: _exactly(keys.DIGEST_BYTES),
    Family.FORGET: _exactly(keys.DUE_BYTES),
    Family.LOADS: range(LOAD_KEY_BYTES, PART_KEY_BYTES + 1),
    Family.LOGS: range(0, max(READER_NAME_BYTES_MAX, GROUP_NAME_BYTES_MAX) + 1),
    Family.LOG_BLOCKS: _exactly(8),
    Family.TOPICS: _exactly(0),
    Family.GROUPS: range(1, GROUP_NAME_BYTES_MAX + 1),
    Family.SCHEMAS: _exactly(SCHEMA_KEY_BYTES),
    Family.ROUTES: _exactly(ROUTE_KEY_BYTES),
    Family.SCHEDULES: range(1, SCHEDULE_NAME_CHARS_MAX + 1),
    Family.CALLBACKS: _exactly(CALLBACK_KEY_BYTES),
    Family.WAITS: _exactly(ID_BYTES),
    Family.WAITED_FOR: (NOTE_KEY_BYTES, WAITED_FOR_KEY_BYTES),
    Family.CAP_KEYS: _exactly(keys.DIGEST_BYTES),
    Family.PARKED: _exactly(keys.DIGEST_BYTES + keys.LEVEL_BYTES + keys.DUE_BYTES),
    Family.CAP_DUE: _exactly(keys.DUE_BYTES),
    Family.POSITIONS: _exactly(2),
    Family.LAST_OF_KEY: _exactly(keys.DIGEST_BYTES),
    Family.REPLACED: _exactly(8),
}
"""How long the keys of a family may be, without the number that they begin with."""


def key_fits(family: Family, key: bytes) -> bool:
    """Whether a key has a length that its family allows."""
    return len(key) - keys.PREFIX_BYTES in KEY_WIDTHS[family]


class Kind(IntFlag):
    """What a number is that of. The first log of a topic has the topic's."""

    QUEUE = 1
    TOPIC = 2
    LOG = 4
    SHARED = 8
    """A group that shares messages."""
    GROUP = 16
    """Another group, which has no entries of its own."""


OF_TOPICS = Kind.TOPIC | Kind.LOG | Kind.SHARED | Kind.GROUP

FAMILIES_OF = {
    Kind.QUEUE: frozenset(QUEUE_FAMILIES),
    Kind.TOPIC: frozenset(TOPIC_FAMILIES),
    Kind.LOG: frozenset(LOG_FAMILIES),
    Kind.SHARED: frozenset(GROUP_FAMILIES)
    - {
        Family.QUEUES,
        Family.ITEMS,
        Family.LEFTOVERS,
        Family.ITEM_OPTIONS,
        Family.ITEM_EXPIRY,
        Family.LOADS,
        Family.ROUTES,
        Family.SCHEDULES,
        Family.CALLBACKS,
        Family.WAITS,
        Family.WAITED_FOR,
    },
}


class Owners:
    """What each number of a store is that of, as the records say that can be read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kinds: dict[bytes, Kind] = {}
        self.twice: list[tuple[str, str]] = []
        """Whose numbers another has already: the rule that is broken, and the number."""
        for prefix, _ in store.walk(Family.QUEUES, b"", LAST_KEY):
            self._add(prefix, Kind.QUEUE, "I7")
        for prefix, _ in store.walk(Family.TOPICS, b"", LAST_KEY):
            self._add(prefix, Kind.TOPIC, "I15")
        for prefix, value in store.walk(Family.TOPICS, b"", LAST_KEY):
            record = readable(decode_topic, value)
            for log in () if record is None else record.logs:
                self._add_log(keys.queue_prefix(log), prefix)
        for _, value in store.walk(Family.GROUPS, b"", LAST_KEY):
            group = readable(decode_group, value)
            if group is not None:
                is_shared = group.settings.kind is GroupKind.SHARED
                kind = Kind.SHARED if is_shared else Kind.GROUP
                self._add(keys.queue_prefix(group.number), kind, "I17")

    def _add(self, prefix: bytes, kind: Kind, rule: str) -> None:
        if prefix in self._kinds:
            self.twice.append((rule, f"#{keys.split_queue_prefix(prefix)}"))
        self._kinds[prefix] = self._kinds.get(prefix, Kind(0)) | kind

    def _add_log(self, prefix: bytes, topic: bytes) -> None:
        is_own = prefix == topic and self._kinds[topic] == Kind.TOPIC
        if is_own:
            self._kinds[prefix] |= Kind.LOG
        else:
            self._add(prefix, Kind.LOG, "I15")

    def has(self, prefix: bytes, kind: Kind) -> bool:
        return bool(self._kinds.get(prefix, Kind(0)) & kind)

    @property
    def highest(self) -> int:
        """The highest number that somebody has."""
        return max(map(keys.split_queue_prefix, self._kinds), default=0)

    def may_have(self, prefix: bytes, family: Family) -> bool:
        """Whether entries of a family may begin with a number."""
        kinds = self._kinds.get(prefix, Kind(0))
        return any(kinds & kind and family in found for kind, found in FAMILIES_OF.items())

    def check_keys(self) -> Iterator[Violation]:
        """I7, for every key that begins with a number, also with one that nobody has."""
        for rule, name in self.twice:
            yield Violation(rule, name, "several queues, topics, logs or groups have the number")
        for family in KEY_WIDTHS:
            for key, _ in self._store.walk(family, b"", LAST_KEY):
                if not key_fits(family, key):
                    yield Violation("I7", "-", f"{family.family_name} has the key {key.hex()}")
                elif not self.may_have(key[: keys.PREFIX_BYTES], family):
                    number = keys.split_queue_prefix(key[: keys.PREFIX_BYTES])
                    yield Violation("I7", f"#{number}", f"{family.family_name} has {key.hex()}")
