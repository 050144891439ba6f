"""The queue as plain dictionaries: what the engine must do, without how."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from queueber.model import (
    NO_OPTIONS,
    Added,
    AttemptEnd,
    FailOutcome,
    ItemOptions,
    LoadRef,
    NewItems,
    PartRef,
    QueueSettings,
    Receipt,
)
from tests.support.load_model import (
    LOAD_KEEP_MS,
    ModelCommit,
    ModelLoad,
    ModelLoaded,
    ModelRow,
    decide,
)

BATCH_KEEP_MS = 400
PRODUCER_KEEP_MS = 500
OLDEST_FIRST_EVERY = 3
ANSWERS_KEPT = 2
QUARANTINE_PATIENCE_MS = 100

_ENDS = {
    "the lease ran out": AttemptEnd.EXPIRED,
    "its worker lost the connection": AttemptEnd.DISCONNECTED,
}

TOTALS = (
    "added", "polled", "removed", "expired", "extended", "completed", "failed", "released", "died",
    "redriven", "cancelled", "duplicates", "dead_dropped", "unclaimed",
)  # fmt: skip


@dataclass
class ModelItem:
    contents: bytes
    visible_at_ms: int
    state: str  # ready, delayed, held or dead
    priority: int = 5
    key: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    batch: str = ""
    options: ItemOptions = NO_OPTIONS
    expires_at_ms: int = 0
    """When it dies, because nobody has leased it; 0: it does not."""
    lease: bytes = b""
    failures_ms: list[int] = field(default_factory=list)
    last_error: str = ""
    ends: list[tuple[AttemptEnd, str]] = field(default_factory=list)
    """How each failure ended."""
    group_max: int = 0
    uncharged: int = 0
    """How many of its leases ended without counting an attempt."""
    died_at_ms: int = 0
    has_slot: bool = False
    """Whether it counts among those of its cap key."""
    is_parked: bool = False
    has_token: bool = False
    """Whether one of the rate of its cap key is set aside for it."""

    @property
    def deliveries(self) -> int:
        return len(self.failures_ms) + min(self.uncharged, 255) + (self.state == "held")

    @property
    def size(self) -> int:
        packed = sum(
            4 + len(name.encode()) + len(value.encode()) for name, value in self.attributes.items()
        )
        return len(self.contents) + len(self.key.encode()) + packed


@dataclass
class ModelBatch:
    added: set[bytes] = field(default_factory=set)
    done: set[bytes] = field(default_factory=set)
    dead: set[bytes] = field(default_factory=set)
    changed_at_ms: int = 0
    forget_at_ms: int = 0
    loads: int = 0

    @property
    def live(self) -> set[bytes]:
        return self.added - self.done - self.dead

    def receipt(self, name: str) -> Receipt:
        return Receipt(
            name,
            len(self.added),
            len(self.done),
            len(self.dead),
            len(self.live),
            digest(self.added),
            digest(self.done),
            digest(self.dead),
            complete=not self.live and not self.loads,
        )


def digest(ids: set[bytes]) -> bytes:
    """As docs/storage-format.md defines it, id by id."""
    prime = (1 << 128) - 159
    c1, c2, c3 = (
        0x9E3779B97F4A7C15F39CC0605CEDC835,
        0xC2B2AE3D27D4EB4F165667B19E3779F9,
        0xD6E8FEB86659FD93A0761D6478BD642F,
    )
    numbers = [int.from_bytes(each) for each in ids]
    return (sum(c1 * x + c2 * x**2 + c3 * x**3 for x in numbers) % prime).to_bytes(16)


@dataclass
class ModelProducer:
    epoch: int
    sequence: int
    seen_at_ms: int
    forget_at_ms: int
    answers: dict[int, tuple[list[bytes], Added]] = field(default_factory=dict)
    """What recent calls brought, and what they were answered."""


@dataclass(frozen=True)
class ModelResult:
    id: bytes
    result: bytes
    attempt: int
    key: str
    batch: str
    attributes: Mapping[str, str]


EVENT_ITEM_ATTRIBUTES_MAX = 1
"""Attributes of an item that fit into an event beside its own; a test that uses the model sets the
limit so."""
EVENT_OWN_ATTRIBUTES = 6


@dataclass(frozen=True)
class ModelEvent:
    """What a route publishes of a change."""

    change: str
    id: bytes
    key: str
    attempt: int
    payload: str
    said: object
    """The contents, or in a diff the state that the item has now."""
    attributes: Mapping[str, str]

    ons: ClassVar[dict[str, str]] = {
        "added": "insert",
        **dict.fromkeys(("failed", "released", "expired", "redriven", "rescheduled"), "update"),
        **dict.fromkeys(("completed", "removed", "dead", "cancelled", "purged"), "delete"),
    }


def _tokens(full_at_ms: Fraction, items: int, ms: int, now_ms: int) -> int:
    """How many tokens a bucket has that is full at a time."""
    spent = min(max(Fraction(full_at_ms - now_ms) / ms, Fraction(0)), Fraction(1))
    return int((1 - spent) * items)


@dataclass
class ModelQueue:
    settings: QueueSettings
    items: dict[bytes, ModelItem] = field(default_factory=dict)
    lease_expires_ms: dict[bytes, int] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TOTALS, 0))
    leases_total: int = 0
    paused_until_ms: int = 0
    rate_full_at_ms: Fraction = Fraction(0)
    """When the rate allows a full burst again."""
    key_full_at_ms: dict[str, Fraction] = field(default_factory=dict)
    """The same of each cap key."""
    keys: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    producers: dict[str, ModelProducer] = field(default_factory=dict)
    batches: dict[str, ModelBatch] = field(default_factory=dict)
    results: list[ModelResult] = field(default_factory=list)
    block_ends: list[int] = field(default_factory=list)
    readers: dict[str, int] = field(default_factory=dict)
    loads: dict[str, ModelLoad] = field(default_factory=dict)
    loaded: dict[str, ModelLoaded] = field(default_factory=dict)
    keys_are_frozen: bool = False
    sources: dict[str, str] = field(default_factory=dict)
    """By what kind of change there are events of: what they hold."""
    events: list[ModelEvent] = field(default_factory=list)

    def tell(self, change: str, item_id: bytes, state: str, attempt: int = 0) -> None:
        """An item changes; without `attempt`, in the one that its failures say."""
        payload = self.sources.get(ModelEvent.ons[change])
        if payload is None:
            return
        item = self.items[item_id]
        if len(item.attributes) > EVENT_ITEM_ATTRIBUTES_MAX and payload == "full":
            payload = "key"
        said = {"full": item.contents, "diff": state, "key": None}[payload]
        attributes = item.attributes if payload == "full" else {}
        attempt = attempt or len(item.failures_ms) + 1
        event = ModelEvent(change, item_id, item.key, attempt, payload, said, attributes)
        self.events.append(event)

    # --- what there is ----------------------------------------------------------------------------

    def count(self, state: str) -> int:
        return sum(item.state == state for item in self.items.values())

    def of_state(self, state: str) -> list[bytes]:
        """In the order in which peek shows them."""
        ids = [item_id for item_id, item in self.items.items() if item.state == state]
        if state == "ready":
            return sorted(ids, key=lambda i: (self.level(i), *self._age(i)))
        if state == "held":
            return sorted(ids, key=lambda i: (self.items[i].lease, i))
        return sorted(ids, key=self._age) if state == "delayed" else sorted(ids)

    def level(self, item_id: bytes) -> int:
        item = self.items[item_id]
        level = 9 - item.priority + (10 if item.group_max else 0)
        return level + (20 if item.is_parked else 0)

    def _age(self, item_id: bytes) -> tuple[int, bytes]:
        return self.items[item_id].visible_at_ms, item_id

    def held_by(self, lease: bytes) -> list[bytes]:
        return [i for i, item in self.items.items() if lease and item.lease == lease]

    def leases(self) -> list[tuple[bytes, int, int]]:
        """Each lease with its items and its expiry, oldest first."""
        return [
            (lease, len(self.held_by(lease)), expires_at_ms)
            for lease, expires_at_ms in sorted(self.lease_expires_ms.items())
        ]

    # --- adding -----------------------------------------------------------------------------------

    def expected_refusal(self, items: NewItems) -> str:
        """What an add of a producer is refused for; "" when it is not."""
        producer = items.producer
        known = None if producer is None else self.producers.get(producer.id)
        if producer is None:
            return ""
        if known is not None and producer.epoch < known.epoch:
            return "is over"
        last = known.sequence if known is not None and known.epoch == producer.epoch else 0
        if producer.sequence > last + 1:
            return "leaves a gap"
        if known is not None and producer.sequence <= last:
            brought, _ = known.answers.get(producer.sequence, (items.contents, None))
            return "" if brought == items.contents else "had other contents"
        return ""

    def expected_repeat(self, items: NewItems) -> Added | None:
        producer = items.producer
        known = None if producer is None else self.producers.get(producer.id)
        if producer is None or known is None or known.epoch != producer.epoch:
            return None
        if producer.sequence > known.sequence:
            return None
        forgotten: tuple[list[bytes], Added] = [], Added((), (), is_repeat=True)
        return known.answers.get(producer.sequence, forgotten)[1]

    def expected_duplicates(self, items: NewItems, now_ms: int) -> list[bool]:
        seen = {key for key, (_, forget_at_ms) in self.keys.items() if forget_at_ms > now_ms}
        duplicates = []
        for key in items.keys or [""] * len(items.contents):
            duplicates.append(bool(key) and key in seen)
            seen.add(key)
        return duplicates

    def add(self, items: NewItems, added: Added, now_ms: int) -> None:
        count = len(items.contents)
        duplicates = self.expected_duplicates(items, now_ms)
        for at, item_id in enumerate(added.ids):
            key = items.keys[at] if items.keys else ""
            if duplicates[at]:
                assert self.keys[key][0] == item_id
                continue
            delay_ms = items.delays_ms[at] if items.delays_ms else 0
            self.items[item_id] = ModelItem(
                items.contents[at],
                now_ms + delay_ms,
                "delayed" if delay_ms else "ready",
                priority=items.priorities[at] if items.priorities else 5,
                key=key,
                attributes=items.attributes[at] if items.attributes else {},
                batch=items.batch,
                options=items.options[at] if items.options else NO_OPTIONS,
            )
            if expires_ms := self.items[item_id].options.expires_ms:
                self.items[item_id].expires_at_ms = now_ms + expires_ms
            self.tell("added", item_id, self.items[item_id].state)
            if key and self.settings.dedup_window_ms:
                self.keys[key] = (item_id, now_ms + self.settings.dedup_window_ms)
            if items.batch:
                self.batches.setdefault(items.batch, ModelBatch()).added.add(item_id)
        if items.batch:
            self._batch_changed(items.batch, now_ms)
        self.totals["added"] += count - sum(duplicates)
        self.totals["duplicates"] += sum(duplicates)
        if items.producer is not None:
            self._remember_answer(items, added, now_ms)

    def _remember_answer(self, items: NewItems, added: Added, now_ms: int) -> None:
        producer = items.producer
        assert producer is not None
        known = self.producers.get(producer.id)
        if known is None:
            known = ModelProducer(producer.epoch, 0, now_ms, now_ms + PRODUCER_KEEP_MS)
            self.producers[producer.id] = known
        elif known.epoch != producer.epoch:
            known.answers.clear()
        known.epoch, known.sequence, known.seen_at_ms = producer.epoch, producer.sequence, now_ms
        answer = Added(added.ids, added.duplicates, is_repeat=True)
        known.answers[producer.sequence] = list(items.contents), answer
        known.answers.pop(producer.sequence - ANSWERS_KEPT, None)

    # --- polling ----------------------------------------------------------------------------------

    def room(self, now_ms: int) -> int:
        """How many items may be leased, by the queue's caps."""
        s = self.settings
        room = s.concurrency_max - self.count("held") if s.concurrency_max else 1 << 62
        if s.rate_items:
            room = min(room, _tokens(self.rate_full_at_ms, s.rate_items, s.rate_ms, now_ms))
        return max(0, room)

    def correct_rates(self, now_ms: int) -> None:
        """The clock was set back, or the rates have changed."""
        s = self.settings
        if s.rate_items:
            self.rate_full_at_ms = min(self.rate_full_at_ms, Fraction(now_ms + s.rate_ms))
        if not s.cap_by_rate_items:
            self.key_full_at_ms.clear()
        else:
            for key, full_at_ms in self.key_full_at_ms.items():
                self.key_full_at_ms[key] = min(full_at_ms, Fraction(now_ms + s.cap_by_rate_ms))

    def cap_key(self, item_id: bytes) -> str:
        """What an item is capped by, apart from others; empty if it is not."""
        return self.items[item_id].attributes.get(self.settings.cap_by, "")

    @property
    def _caps_keys(self) -> bool:
        s = self.settings
        return bool(s.cap_by_concurrency_max or s.cap_by_rate_items)

    def _tokens_of(self, key: str, now_ms: int, given: Sequence[bytes] = ()) -> int:
        """How many tokens a key has, once these are given."""
        s = self.settings
        if not s.cap_by_rate_items:
            return 1 << 62
        full_at_ms = self.key_full_at_ms.get(key, Fraction(0))
        of_key = [i for i in given if self.cap_key(i) == key]
        return _tokens(full_at_ms, s.cap_by_rate_items, s.cap_by_rate_ms, now_ms) - len(of_key)

    def _set_aside(self, key: str, given: Sequence[bytes] = ()) -> int:
        return sum(o.has_token and self.cap_key(i) == key and i not in given
                   for i, o in self.items.items())  # fmt: skip

    def _waits_for_its_key(self, item_id: bytes, group: list[bytes], now_ms: int) -> bool:
        """Whether a poll that meets the item, and has given these, parks it."""
        item, key, limit = self.items[item_id], self.cap_key(item_id), self._limit_of_keys
        if not key:
            return False
        tokens = self._tokens_of(key, now_ms, group)
        if item.has_slot or not self._caps_keys:
            return item.has_slot and tokens < 1
        tokens -= self._set_aside(key, group)
        of_key = [i for i in self.items if self.cap_key(i) == key]
        if any(self.items[i].is_parked for i in of_key):
            return True
        return tokens < 1 or sum(self.items[i].has_slot or i in group for i in of_key) >= limit

    @property
    def _limit_of_keys(self) -> int:
        return self.settings.cap_by_concurrency_max or 1 << 62

    def fill_slots(self, now_ms: int) -> None:
        """Parked items take the slots and tokens that there are, in their order."""
        for item_id in self.of_state("ready"):
            item = self.items[item_id]
            if not item.is_parked:
                continue
            key = self.cap_key(item_id)
            slots = [i for i, o in self.items.items() if o.has_slot and self.cap_key(i) == key]
            tokens = self._tokens_of(key, now_ms) - self._set_aside(key)
            if len(slots) < self._limit_of_keys and tokens > 0:
                item.is_parked, item.has_slot = False, True
                item.has_token = self.settings.cap_by_rate_items > 0

    def expected_poll(
        self, counts: list[int], now_ms: int, held: list[bytes] | None = None
    ) -> list[list[bytes]]:
        """`held` has what the caller holds already, when its leases end together."""
        left = self.of_state("ready") if self.paused_until_ms <= now_ms else []
        left = [i for i in left if not self.items[i].is_parked]
        given: list[bytes] = []
        room = self.room(now_ms)
        answers: list[list[bytes]] = []
        for turn, count in enumerate(counts, self.leases_total + 1):
            is_oldest_first = turn % OLDEST_FIRST_EVERY == 0
            order = sorted(
                left,
                key=lambda i: (0 if is_oldest_first else self.level(i) % 10, *self._age(i)),
            )
            group = self._group(order, min(count, room), held or [], now_ms, given)
            given += group
            room -= min(count, room)
            answers.append(group)
            if not group:
                # The first poll of a call that finds nothing is its last.
                return answers + [[]] * (len(counts) - len(answers))
            if held is not None:
                held = held + group
            left = [i for i in left if i not in group and not self.items[i].is_parked]
        return answers

    def _group(
        self, order: list[bytes], count: int, held: list[bytes], now_ms: int, given: list[bytes]
    ) -> list[bytes]:
        """The first that may go together; a quarantined item that does not fit is passed over for
        a while, and so are those of its level that stand behind it."""
        group: list[bytes] = []
        passed_over: set[int] = set()
        for item_id in order:
            together = [*held, *group, item_id]
            if len(group) == count or self._is_too_many([*held, *group], len(together)):
                break
            level = self.level(item_id)
            if level in passed_over:
                continue
            if self._is_too_many([item_id], len(together)):
                if self.items[item_id].visible_at_ms < now_ms - QUARANTINE_PATIENCE_MS:
                    break
                passed_over.add(level)
                continue
            if self._waits_for_its_key(item_id, [*given, *group], now_ms):
                item = self.items[item_id]
                item.is_parked, item.has_slot, item.has_token = True, False, False
                continue
            group.append(item_id)
        return group

    def _is_too_many(self, ids: list[bytes], count: int) -> bool:
        return any(0 < self.items[i].group_max < count for i in ids)

    def poll(self, lease: bytes, ids: list[bytes], expires_at_ms: int, now_ms: int) -> None:
        s = self.settings
        if s.rate_items:
            share = Fraction(len(ids), s.rate_items) * s.rate_ms
            self.rate_full_at_ms = max(self.rate_full_at_ms, Fraction(now_ms)) + share
        for item_id in ids:
            key = self.cap_key(item_id)
            if key and s.cap_by_rate_items:
                full_at_ms = max(self.key_full_at_ms.get(key, Fraction(0)), Fraction(now_ms))
                share = Fraction(s.cap_by_rate_ms, s.cap_by_rate_items)
                self.key_full_at_ms[key] = full_at_ms + share
            self.items[item_id].state = "held"
            self.items[item_id].expires_at_ms = 0
            self.items[item_id].has_slot |= bool(key and self._caps_keys)
            self.items[item_id].has_token = False
            self.items[item_id].lease = lease
        self.lease_expires_ms[lease] = expires_at_ms
        self.leases_total += 1
        self.totals["polled"] += len(ids)

    # --- outcomes ---------------------------------------------------------------------------------

    def holds(self, item_id: bytes, lease: bytes, now_ms: int) -> bool:
        item = self.items.get(item_id)
        if item is None or not lease or item.lease != lease:
            return False
        return self.lease_expires_ms[lease] > now_ms

    def remove(self, item_id: bytes, lease: bytes, now_ms: int) -> bool:
        if not self.holds(item_id, lease, now_ms):
            return False
        self.totals["removed"] += 1
        self.tell("removed", item_id, "gone")
        self._end(item_id, "done", now_ms)
        return True

    def remove_whole(self, lease: bytes, count: int, now_ms: int) -> bool:
        held = [i for i in self.held_by(lease) if self.holds(i, lease, now_ms)]
        return len(held) == count and all(self.remove(i, lease, now_ms) for i in held)

    def complete(
        self, pairs: Sequence[tuple[bytes, bytes]], results: list[bytes], now_ms: int
    ) -> list[bool]:
        outcomes = []
        for (item_id, lease), result in zip(pairs, results, strict=True):
            held = self.holds(item_id, lease, now_ms)
            outcomes.append(held)
            if held:
                item = self.items[item_id]
                attempt = len(item.failures_ms) + 1
                self.results.append(
                    ModelResult(item_id, result, attempt, item.key, item.batch, item.attributes)
                )
                self.totals["completed"] += 1
                self.tell("completed", item_id, "gone")
                self._end(item_id, "done", now_ms)
        if any(outcomes):
            self.block_ends.append(len(self.results))
        return outcomes

    def fail(
        self, item_id: bytes, lease: bytes, error: str, delay_ms: int | None, now_ms: int
    ) -> FailOutcome:
        if not self.holds(item_id, lease, now_ms):
            return FailOutcome.REFUSED
        self._let_go(item_id, now_ms)
        return self._charge(item_id, "failed", error, delay_ms, now_ms)

    def release(self, item_id: bytes, lease: bytes, now_ms: int) -> bool:
        if not self.holds(item_id, lease, now_ms):
            return False
        self._let_go(item_id, now_ms)
        self._give_back(item_id, now_ms)
        self.tell("released", item_id, "ready")
        self.totals["released"] += 1
        return True

    def release_lease(self, lease: bytes, now_ms: int) -> int:
        held = self.held_by(lease)
        for item_id in held:
            self._let_go(item_id, now_ms)
            self._give_back(item_id, now_ms)
            self.tell("released", item_id, "ready")
        self.totals["released"] += len(held)
        return len(held)

    def extend(self, lease: bytes, lease_ms: int, now_ms: int) -> bool:
        if self.lease_expires_ms.get(lease, 0) <= now_ms:
            return False
        self.lease_expires_ms[lease] = now_ms + lease_ms
        self.totals["extended"] += 1
        return True

    def end_leases(self, leases: Sequence[bytes], now_ms: int, error: str) -> int:
        """One that ran out, or those of a connection that is gone."""
        held = [item_id for lease in leases for item_id in self.held_by(lease)]
        for item_id in held:
            self._let_go(item_id, now_ms)
            if len(held) == 1:
                self._charge(item_id, "expired", error, None, now_ms)
            else:
                if self.settings.isolation:
                    self.items[item_id].group_max = min(len(held) // 2, 255)
                self._give_back(item_id, now_ms)
                self.tell("expired", item_id, "ready")
        self.totals["expired"] += len(held)
        return len(held)

    def _charge(
        self, item_id: bytes, change: str, error: str, delay_ms: int | None, now_ms: int
    ) -> FailOutcome:
        item = self.items[item_id]
        if delay_ms is None:
            steps = item.options.backoff_ms or self.settings.backoff_ms
            delay_ms = steps[min(len(item.failures_ms), len(steps) - 1)]
        item.failures_ms.append(now_ms)
        item.last_error = error
        item.ends.append((_ENDS.get(error, AttemptEnd.FAILED), error))
        self.totals["failed"] += 1
        attempts_max = item.options.attempts_max
        if attempts_max is None:
            attempts_max = self.settings.attempts_max
        if 0 < attempts_max <= len(item.failures_ms):
            item.state, item.died_at_ms = "dead", now_ms
            self.totals["died"] += 1
            self.tell("dead", item_id, "dead", len(item.failures_ms))
            self._count_end(item_id, item.batch, "dead", now_ms)
            return FailOutcome.DIED
        item.state = "delayed" if delay_ms else "ready"
        item.visible_at_ms = now_ms + delay_ms
        self.tell(change, item_id, item.state, len(item.failures_ms))
        return FailOutcome.RETRIED

    def _give_back(self, item_id: bytes, now_ms: int) -> None:
        """Its lease has ended, and counts no attempt."""
        self.items[item_id].uncharged += 1
        self._make_ready(item_id, now_ms)

    def _make_ready(self, item_id: bytes, now_ms: int) -> None:
        self.items[item_id].state = "ready"
        self.items[item_id].visible_at_ms = now_ms

    def _let_go(self, item_id: bytes, now_ms: int) -> None:
        lease, self.items[item_id].lease = self.items[item_id].lease, b""
        if not self.held_by(lease):
            del self.lease_expires_ms[lease]
        self.items[item_id].has_slot = False
        self.fill_slots(now_ms)

    def _end(self, item_id: bytes, side: str, now_ms: int) -> None:
        if self.items[item_id].state == "held":
            self._let_go(item_id, now_ms)
        item = self.items.pop(item_id)
        if item.state != "dead":
            self._count_end(item_id, item.batch, side, now_ms)

    def _count_end(self, item_id: bytes, name: str, side: str, now_ms: int) -> None:
        if name:
            batch = self.batches[name]
            (batch.done if side == "done" else batch.dead).add(item_id)
            self._batch_changed(name, now_ms)

    def _batch_changed(self, name: str, now_ms: int) -> None:
        batch = self.batches.setdefault(name, ModelBatch())
        batch.changed_at_ms = now_ms
        if not batch.live and not batch.loads and not batch.forget_at_ms:
            batch.forget_at_ms = now_ms + BATCH_KEEP_MS

    def forget_batch(self, name: str) -> bool | None:
        """None: it is refused, because the batch has live items or a load adds to it."""
        batch = self.batches.get(name)
        if batch is None:
            return False
        if batch.live or batch.loads:
            return None
        self._drop_batch(name)
        return True

    def forget_batches(self, unchanged_for_ms: int, now_ms: int) -> int:
        old = [
            name
            for name, batch in self.batches.items()
            if not batch.live
            and not batch.loads
            and now_ms - batch.changed_at_ms >= unchanged_for_ms
        ]
        for name in old:
            self._drop_batch(name)
        return len(old)

    def _drop_batch(self, name: str) -> None:
        """Its dead letters belong to no batch, also not to a later one of the same name."""
        del self.batches[name]
        for item in self.items.values():
            if item.batch == name:
                item.batch = ""

    # --- operating --------------------------------------------------------------------------------

    def cancel(self, ids: Sequence[bytes], now_ms: int, change: str = "cancelled") -> list[bool]:
        known = set(self.items)
        for item_id in dict.fromkeys(ids):
            if item_id in known:
                self.tell(change, item_id, "gone")
                self._end(item_id, "dead", now_ms)
                self.totals["cancelled"] += 1
        self.fill_slots(now_ms)
        return [item_id in known for item_id in ids]

    def reschedule(self, ids: Sequence[bytes], delay_ms: int, now_ms: int) -> list[bool]:
        rescheduled = {i for i in ids if i in self.items and self._may_wait(i, now_ms + delay_ms)}
        for item_id in rescheduled:
            item = self.items[item_id]
            if item.state == "ready" and not delay_ms:
                continue
            item.state, item.visible_at_ms = "delayed" if delay_ms else "ready", now_ms + delay_ms
            item.has_slot = item.has_token = item.is_parked = False
            self.tell("rescheduled", item_id, item.state)
        self.fill_slots(now_ms)
        return [item_id in rescheduled for item_id in ids]

    def _may_wait(self, item_id: bytes, until_ms: int) -> bool:
        item = self.items[item_id]
        is_in_time = not item.expires_at_ms or until_ms < item.expires_at_ms
        return item.state in ("ready", "delayed") and is_in_time

    def redrive(self, ids: Sequence[bytes], now_ms: int) -> int:
        dead = {i for i in ids if i in self.items and self.items[i].state == "dead"}
        for item_id in dead:
            item = self.items[item_id]
            self.tell("redriven", item_id, "ready")
            item.failures_ms, item.last_error, item.ends = [], "", []
            item.group_max = item.uncharged = 0
            self._make_ready(item_id, now_ms)
            if item.batch in self.batches and item_id in self.batches[item.batch].dead:
                batch = self.batches[item.batch]
                batch.dead.discard(item_id)
                batch.changed_at_ms = now_ms
            else:
                item.batch = ""
        self.totals["redriven"] += len(dead)
        return len(dead)

    # --- results ----------------------------------------------------------------------------------

    @property
    def first_offset(self) -> int:
        """Whole calls whose results every reader has acknowledged are gone."""
        if not self.readers:
            return self._trimmed
        acknowledged = min(self.readers.values())
        gone = [end for end in self.block_ends if end <= acknowledged]
        return max([self._trimmed, *gone])

    _trimmed: int = 0

    def trim(self) -> None:
        self._trimmed = self.first_offset

    # --- time -------------------------------------------------------------------------------------

    def sweep(self, now_ms: int) -> None:
        for item_id, item in sorted(self.items.items()):
            if item.state in ("ready", "delayed") and 0 < item.expires_at_ms <= now_ms:
                item.state, item.died_at_ms, item.expires_at_ms = "dead", now_ms, 0
                item.has_slot = item.has_token = item.is_parked = False
                self.totals["died"] += 1
                self.totals["unclaimed"] += 1
                self.tell("dead", item_id, "dead")
                self._count_end(item_id, item.batch, "dead", now_ms)
        self.fill_slots(now_ms)
        for lease, expires_at_ms in list(self.lease_expires_ms.items()):
            if expires_at_ms <= now_ms:
                self.end_leases([lease], now_ms, "the lease ran out")
        self._drop_dead(now_ms)
        for item in self.items.values():
            if item.state == "delayed" and item.visible_at_ms <= now_ms:
                item.state = "ready"
        if not self.is_commit_under_way:
            self.forget(now_ms)
        if self.paused_until_ms <= now_ms:
            self.paused_until_ms = 0
        self.fill_slots(now_ms)
        self.trim()

    def _drop_dead(self, now_ms: int) -> None:
        age_ms = self.settings.dead_age_ms
        for item_id in self.of_state("dead"):
            if age_ms and self.items[item_id].died_at_ms + age_ms <= now_ms:
                self.tell("purged", item_id, "gone")
                self._end(item_id, "dead", now_ms)
                self.totals["dead_dropped"] += 1

    def forget(self, now_ms: int) -> None:
        # The key of an item that is there finds it, also after its window; that does not come back
        # when the clock steps back.
        self.keys = {
            key: (item_id, forget_at_ms if forget_at_ms > now_ms else 0)
            for key, (item_id, forget_at_ms) in self.keys.items()
            if forget_at_ms > now_ms or item_id in self.items
        }
        self._forget_producers(now_ms)
        # In the order of their times: a load that is dropped lets go of its batch.
        due = [(each.forget_at_ms, 0, name) for name, each in self.batches.items()]
        due += [(each.forget_at_ms, 1, name) for name, each in self.loads.items()]
        for at_ms, kind, name in sorted(due):
            if 0 < at_ms <= now_ms:
                (self._look_at_load if kind else self._look_at_batch)(name, now_ms)
        self.loaded = {
            name: each for name, each in self.loaded.items() if each.forget_at_ms > now_ms
        }

    def _forget_producers(self, now_ms: int) -> None:
        for name, producer in list(self.producers.items()):
            if producer.forget_at_ms <= now_ms:
                producer.forget_at_ms = producer.seen_at_ms + PRODUCER_KEEP_MS
                if producer.forget_at_ms <= now_ms:
                    del self.producers[name]

    def _look_at_batch(self, name: str, now_ms: int) -> None:
        batch = self.batches[name]
        if batch.live or batch.loads:
            batch.forget_at_ms = 0
        else:
            batch.forget_at_ms = batch.changed_at_ms + BATCH_KEEP_MS
            if batch.forget_at_ms <= now_ms:
                self._drop_batch(name)

    def _look_at_load(self, name: str, now_ms: int) -> None:
        load = self.loads[name]
        load.forget_at_ms = load.seen_at_ms + load.timeout_ms
        if load.forget_at_ms <= now_ms:
            self.drop_load(name, now_ms)

    # --- loads ------------------------------------------------------------------------------------

    @property
    def is_commit_under_way(self) -> bool:
        return any(load.is_committing for load in self.loads.values())

    def join_load(self, load: ModelLoad, timeout_ms: int, now_ms: int) -> None:
        if load.is_committing:
            return
        load.seen(now_ms)
        if timeout_ms < load.timeout_ms and not self.is_commit_under_way:
            load.timeout_ms = timeout_ms
            load.forget_at_ms = min(load.forget_at_ms, load.seen_at_ms + timeout_ms)

    def begin_load(
        self, ref: LoadRef, batch: str, id_head: bytes, timeout_ms: int, now_ms: int
    ) -> None:
        if ref.name in self.loads:
            self.drop_load(ref.name, now_ms)
        if batch:
            self.batches.setdefault(batch, ModelBatch()).loads += 1
        self.loads[ref.name] = ModelLoad(
            ref,
            batch,
            id_head,
            started_at_ms=int.from_bytes(id_head[:6]),
            seen_at_ms=now_ms,
            timeout_ms=timeout_ms,
            forget_at_ms=now_ms + timeout_ms,
        )

    def drop_load(self, name: str, now_ms: int) -> None:
        load = self.loads.pop(name)
        if load.batch:
            batch = self.batches[load.batch]
            batch.loads -= 1
            if not batch.added and not batch.loads and not batch.forget_at_ms:
                del self.batches[load.batch]
            else:
                self._batch_changed(load.batch, now_ms)

    def finish_part(
        self, load: ModelLoad, ref: PartRef, rows: Sequence[ModelRow], now_ms: int
    ) -> None:
        load.parts[ref] = list(rows)
        load.seen(now_ms)

    def decide_commit(self, load: ModelLoad, refs: Sequence[PartRef], now_ms: int) -> ModelCommit:
        taken = {key for key, (_, forget_at_ms) in self.keys.items() if forget_at_ms > now_ms}
        load.is_committing = True
        return decide(load, refs, taken, now_ms)

    def commit_load(self, commit: ModelCommit) -> ModelLoaded:
        now_ms = commit.now_ms
        load = self.loads.pop(commit.ref.name)
        for item_id, row in commit.added:
            is_ready = row.visible_at_ms <= load.started_at_ms
            self.items[item_id] = ModelItem(
                row.contents,
                load.started_at_ms if is_ready else row.visible_at_ms,
                "ready" if is_ready else "delayed",
                priority=row.priority,
                key=row.key,
                attributes=row.attributes,
                batch=load.batch,
            )
            if row.key and self.settings.dedup_window_ms:
                forget_at_ms = load.started_at_ms + self.settings.dedup_window_ms
                self.keys[row.key] = (item_id, forget_at_ms)
        if load.batch:
            batch = self.batches[load.batch]
            batch.added |= {item_id for item_id, _ in commit.added}
            batch.loads -= 1
            self._batch_changed(load.batch, now_ms)
        self.totals["added"] += len(commit.added)
        self.totals["duplicates"] += commit.duplicates
        loaded = ModelLoaded(load.ref, len(commit.added), commit.duplicates, now_ms + LOAD_KEEP_MS)
        self.loaded[load.ref.name] = loaded
        return loaded

    def crash(self) -> None:
        """What only memory knew is lost."""
        self.keys_are_frozen = False
        for load in self.loads.values():
            load.is_committing = False
