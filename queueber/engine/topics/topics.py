"""Topics: find, create, change and delete them, however many there are.

Nothing is read when the server starts. A topic is read when it is first used, and stays in memory
while somebody refers to it, or while it is among those that were used last. So there is never more
than one object of a topic.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any
from weakref import WeakValueDictionary

from queueber.db.families import Family
from queueber.db.records.keys import queue_prefix, split_queue_prefix
from queueber.db.records.topics import TopicRecord, decode_topic, encode_topic
from queueber.engine.kernel.noted_times import NotedTimes
from queueber.engine.kernel.transaction import Kernel, Transaction
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.queue.queues import Queues
from queueber.engine.queue.sweep import first_due_ms
from queueber.engine.topics.conditions import check_alias, check_without_sources
from queueber.engine.topics.group import Group
from queueber.engine.topics.schemas import check_configured
from queueber.engine.topics.sequences import Sequences
from queueber.engine.topics.topic_state import TopicState
from queueber.errors import AlreadyExists, InvalidArgument, NotFound, StorageCorrupt
from queueber.ids import QueueId
from queueber.limits import TOPICS_LOADED_MAX
from queueber.model import GroupKind, TopicSettings

TOPICS_KEY = b"topics"
"""How many topics there are, without those that are deleted."""

_FORGOTTEN_AT_ONCE = 4


class Topics:
    """All topics of a store."""

    def __init__(self, kernel: Kernel, queues: Queues) -> None:
        self._kernel = kernel
        self._store = store = kernel.store
        self.queues = queues
        self.when_loaded: Callable[[TopicState], None] = lambda _: None
        """Called with each topic that is read from the store."""
        self.drop_sources: Callable[[Transaction[Any], TopicState], None] = lambda *_: None
        self.check_bridge: Callable[[TopicState, QueueState], None] = lambda *_: None
        """Set by the routes: drops those of a deleted topic; refuses a bridge that is a circle."""
        self.times = NotedTimes(store)
        self._loaded: WeakValueDictionary[QueueId, TopicState] = WeakValueDictionary()
        self._by_name: WeakValueDictionary[str, TopicState] = WeakValueDictionary()
        self._recent: OrderedDict[QueueId, TopicState] = OrderedDict()
        self._evicted: dict[QueueId, None] = {}
        """Topics and groups that may have left memory, and may still be on the agenda."""
        self._groups: WeakValueDictionary[QueueId, QueueState] = WeakValueDictionary()
        self.sequences = Sequences(store)
        kernel.ids.continue_after(self.sequences.last_id)
        self.count = int.from_bytes(store.get(Family.DEFAULT, TOPICS_KEY) or b"")

    # --- finding ----------------------------------------------------------------------------------

    def find(self, name: str, tx: Transaction[Any] | None = None) -> TopicState | None:
        """The topic of a name or alias, deleted or expired or not; None if there is none.

        With a transaction also one that it is about to create.
        """
        if tx is not None and (new := tx.pending.get((self, name))) is not None:
            found: TopicState = new
            return found
        loaded = self._by_name.get(name)
        if loaded is not None:
            self._used(loaded)
            return loaded
        number = self._store.get(Family.TOPIC_NAMES, name.encode())
        if number is None:
            return None
        topic = self.load(split_queue_prefix(number))
        if topic is not None:
            self._by_name[name] = topic
        return topic

    def get(self, name: str, now_ms: int, tx: Transaction[Any] | None = None) -> TopicState:
        """The topic that has the name now."""
        topic = self.find(name, tx)
        if topic is None or not topic.is_alive(now_ms):
            raise not_found(name, 0 if topic is None else topic.record.forks)
        return topic

    def origin(self, topic: TopicState) -> int:
        """What the offsets of a topic are about: a number that it shares with its forks alone."""
        found = topic
        # Forks of an older version do not know it, but their parents are kept.
        while found.record.parent and not found.record.origin:
            parent = self.load(QueueId(found.record.parent))
            if parent is None:
                break
            found = parent
        return found.record.origin or found.queue_id

    def load(self, number: QueueId) -> TopicState | None:
        """The topic of a number; None if there is none."""
        topic = self._loaded.get(number)
        if topic is None:
            record = self._store.get(Family.TOPICS, queue_prefix(number))
            if record is None:
                return None
            try:
                topic = self._state(number, decode_topic(record))
            except Exception as error:
                raise StorageCorrupt(
                    f"the record of topic number {number} cannot be read; run 'queueber verify', "
                    "and restore the store from a backup"
                ) from error
            self._loaded[number] = topic
            self.when_loaded(topic)
        self._used(topic)
        return topic

    def loaded(self, number: QueueId) -> TopicState | None:
        """The topic of a number, if it is in memory."""
        return self._loaded.get(number)

    def _state(self, number: QueueId, record: TopicRecord, *, is_new: bool = False) -> TopicState:
        opened = self._group_opened
        return TopicState(self._store, self.times, number, record, opened, is_new=is_new)

    def _group_opened(self, queue: QueueState) -> None:
        self._groups[queue.queue_id] = queue
        self._kernel.ids.continue_after(queue.counters.last_id)
        self._kernel.agenda.schedule(queue.queue_id, first_due_ms(queue, 0))

    def loaded_group(self, number: QueueId) -> QueueState | None:
        """The group of a number that shares messages, if it is in memory."""
        return self._groups.get(number)

    def group_queue(self, topic_number: QueueId, number: QueueId) -> QueueState | None:
        """The group of a topic that has the number; None if there is none that shares messages."""
        group = self.group_of(topic_number, number)
        return group.queue if group is not None and group.kind is GroupKind.SHARED else None

    def group_of(self, topic_number: QueueId, number: QueueId) -> Group | None:
        """The group of a topic that has the number; None if there is none."""
        topic = self.load(topic_number)
        groups = topic.groups.values() if topic is not None else ()
        return next((each for each in groups if each.queue_id == number), None)

    def _used(self, topic: TopicState) -> None:
        self._recent[topic.queue_id] = topic
        self._recent.move_to_end(topic.queue_id)
        if len(self._recent) > TOPICS_LOADED_MAX:
            number, evicted = self._recent.popitem(last=False)
            self._evicted |= dict.fromkeys((number, *evicted.opened_groups()))
            self._forget_evicted()

    def _forget_evicted(self) -> None:
        """Take a few off the agenda that have left memory: they are noted in the store."""
        for number in list(islice(self._evicted, _FORGOTTEN_AT_ONCE)):
            del self._evicted[number]
            if number not in self._loaded and number not in self._groups:
                self._kernel.agenda.forget(number)
            elif number not in self._recent:
                self._evicted[number] = None  # somebody refers to it

    def names(self, prefix: str, after: str, limit: int, now_ms: int) -> list[str]:
        """Up to `limit` names of living topics with the prefix, in order, all after another."""
        start = max(prefix.encode(), after.encode() + b"\0" if after else b"")
        found: list[str] = []
        for key, number in self._store.walk(Family.TOPIC_NAMES, start, prefix.encode() + b"\xff"):
            topic = self.load(split_queue_prefix(number))
            name = key.decode()
            if topic is not None and topic.name == name and topic.is_alive(now_ms):
                found.append(name)
            if len(found) == limit:
                break
        return found

    # --- creating ---------------------------------------------------------------------------------

    def create(
        self,
        tx: Transaction[Any],
        name: str,
        settings: TopicSettings,
        *,
        partitions: int = 1,
        content_type: str = "",
        alias: str = "",
    ) -> tuple[TopicState, bool]:
        """The topic, and whether it is new. One that exists must be the same."""
        existing = self.in_the_way(tx, name)
        if existing is not None:
            record = existing.record_in(tx)
            wanted = (name, alias, content_type, partitions, settings)
            has = (record.name, record.alias, record.content_type, len(record.logs))
            if wanted != (*has, record.settings):
                raise AlreadyExists(
                    f"topic {name!r} exists with other settings; change them with configure"
                )
            return existing, False
        record = TopicRecord(
            name,
            tx.now_ms,
            (),
            settings,
            alias,
            content_type,
            used_at_ms=tx.now_ms if settings.ttl_ms else 0,
        )
        return self.put(tx, record, partitions), True

    def in_the_way(self, tx: Transaction[Any], name: str) -> TopicState | None:
        """The topic that has the name now. One that has expired is deleted."""
        existing = self.find(name, tx)
        if existing is None:
            return None
        if existing.expires_at_ms <= tx.now_ms:
            self.delete(tx, existing)
            if not existing.record_in(tx).forks:
                return None
        record = existing.record_in(tx)
        if record.is_deleted:
            raise AlreadyExists(
                f"topic {name!r} is deleted, but its forks still need its messages; delete them "
                "first, or choose another name",
                forks=record.forks,
            )
        return existing

    def put(self, tx: Transaction[Any], record: TopicRecord, partitions: int) -> TopicState:
        """Write a new topic. Its first log has its own number, so a small topic needs only one."""
        check_alias(record.name, record.alias)
        first = self._kernel.numbers.take(tx, partitions)
        record = record._replace(logs=tuple(range(first, first + partitions)))
        topic = self._state(first, record, is_new=True)
        tx.batch.put(Family.TOPICS, topic.prefix, encode_topic(record))
        for name in filter(None, (record.name, record.alias)):
            self._take_name(tx, name, topic)
        self._count(tx, 1)
        tx.after_write(self._opened, topic)
        tx.look_at(topic, topic.expires_at_ms)
        return topic

    def _take_name(self, tx: Transaction[Any], name: str, topic: TopicState) -> None:
        taken = self.find(name, tx)
        if taken is not None and taken is not topic and not _is_freed(tx, self, name):
            raise AlreadyExists(f"{name!r} is the name or alias of another topic")
        tx.batch.put(Family.TOPIC_NAMES, name.encode(), topic.prefix)
        tx.pending[self, name] = topic

    def _opened(self, topic: TopicState) -> None:
        self._loaded[topic.queue_id] = topic
        for name in filter(None, (topic.record.name, topic.record.alias)):
            self._by_name[name] = topic
        self._used(topic)

    def _count(self, tx: Transaction[Any], by: int) -> None:
        count = tx.pending.get((self, None), self.count) + by
        if (self, None) not in tx.pending:
            tx.after_write(self._take_count, tx.pending)
        tx.pending[self, None] = count
        tx.batch.put(Family.DEFAULT, TOPICS_KEY, count.to_bytes(8))

    def _take_count(self, pending: dict[object, Any]) -> None:
        self.count = pending[self, None]

    # --- changing ---------------------------------------------------------------------------------

    def configure(
        self,
        tx: Transaction[Any],
        topic: TopicState,
        settings: TopicSettings,
        *,
        partitions: int = 0,
        alias: str | None = None,
    ) -> None:
        """Replace the settings; `partitions` may grow, which changes where new messages with a key
        go. 0 or None leave the others as they are."""
        record = topic.record
        if partitions and partitions < len(record.logs):
            raise InvalidArgument(
                f"partitions is {partitions}; topic {topic.name!r} has {len(record.logs)}, and "
                "their number can only grow"
            )
        if settings.keeps_last_per_key != record.settings.keeps_last_per_key and any(
            topic.next_offset(each) for each in range(len(record.logs))
        ):
            raise InvalidArgument(
                f"keeps_last_per_key: topic {topic.name!r} has messages; decide it when the topic "
                "is created"
            )
        check_configured(self._store, topic, settings, partitions)
        check_alias(record.name, alias)
        logs = record.logs
        if partitions > len(logs):
            first = self._kernel.numbers.take(tx, partitions - len(logs))
            logs += tuple(range(first, first + partitions - len(logs)))
        if alias is not None and alias != record.alias:
            if record.alias:
                self._free_name(tx, record.alias)
            if alias:
                self._take_name(tx, alias, topic)
                tx.after_write(self._by_name.__setitem__, alias, topic)
        used_at_ms = tx.now_ms if settings.ttl_ms else 0
        topic.change(
            tx,
            settings=settings,
            logs=logs,
            alias=record.alias if alias is None else alias,
            used_at_ms=used_at_ms,
        )
        tx.after_write(setattr, topic, "used_at_ms", used_at_ms)
        tx.look_at(topic, tx.now_ms)

    def close(self, tx: Transaction[Any], topic: TopicState) -> None:
        """Take no message after this; closing a closed topic changes nothing."""
        if not topic.record_in(tx).is_closed:
            check_without_sources(topic, topic.record_in(tx), "be closed")
            topic.change(tx, is_closed=True)

    # --- deleting ---------------------------------------------------------------------------------

    def delete(self, tx: Transaction[Any], topic: TopicState) -> None:
        """Delete the topic. Its name is free at once, its space is freed in the background.

        A topic that has forks keeps its name and its messages until the last of them is gone.
        """
        if topic.record_in(tx).is_deleted:
            return
        if topic.record_in(tx).sources:
            self.drop_sources(tx, topic)
        record = topic.change(tx, is_deleted=True)
        self._count(tx, -1)
        if not record.forks:
            self.let_go(tx, topic)

    def let_go(self, tx: Transaction[Any], topic: TopicState) -> None:
        """Nobody needs the deleted topic any more: free its names, and have it dropped."""
        record = topic.record_in(tx)
        for name in filter(None, (record.name, record.alias)):
            self._free_name(tx, name)
        tx.look_at(topic, tx.now_ms)
        parent = self.load(QueueId(record.parent)) if record.parent else None
        if parent is not None:
            left = parent.record_in(tx).forks - 1
            parent.change(tx, forks=left)
            if not left and parent.record_in(tx).is_deleted:
                self.let_go(tx, parent)
            else:
                tx.look_at(parent, tx.now_ms)  # its limits apply again

    def _free_name(self, tx: Transaction[Any], name: str) -> None:
        tx.batch.delete(Family.TOPIC_NAMES, name.encode())
        tx.pending[self, name, "freed"] = True
        tx.pending.pop((self, name), None)
        tx.after_write(self._name_is_freed, name)

    def _name_is_freed(self, name: str) -> None:
        topic = self._by_name.get(name)
        if topic is not None and (topic.record.is_deleted or name != topic.record.name):
            del self._by_name[name]

    def forget(self, tx: Transaction[Any], group: Group) -> None:
        """A group is deleted: look at it no more, and refuse what is left of its leases."""
        tx.after_write(self._group_deleted, group)

    def _group_deleted(self, group: Group) -> None:
        self._kernel.agenda.forget(group.queue_id)
        self._groups.pop(group.queue_id, None)
        if group.opened_queue is not None:
            group.opened_queue.is_deleted = True

    def take_number(self, tx: Transaction[Any]) -> QueueId:
        """A number for a new group."""
        return self._kernel.numbers.take(tx)

    def dropped(self, topic: TopicState) -> None:
        """Nothing of the topic is left in the store."""
        self._loaded.pop(topic.queue_id, None)
        self._recent.pop(topic.queue_id, None)
        self._kernel.agenda.forget(topic.queue_id)

    def __iter__(self) -> Iterator[TopicState]:
        """Those that are in memory."""
        return iter(list(self._loaded.values()))


def not_found(name: str, forks: int) -> NotFound:
    """The error of a topic that does not exist, or that only its forks keep."""
    if forks:
        text = f"topic {name!r} is deleted, and its messages are kept only for its forks"
        return NotFound(text, forks=forks)
    return NotFound(f"there is no topic {name!r}; create it, or check the name")


def _is_freed(tx: Transaction[Any], topics: Topics, name: str) -> bool:
    """Whether the transaction deletes the topic that has the name."""
    return (topics, name, "freed") in tx.pending
