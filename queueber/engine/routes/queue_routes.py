"""The routes of one queue: a change of an item becomes an event for each route that wants it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from queueber.db.records.blocks import unpack_attributes
from queueber.db.records.runs import Run, decode_mark, mark_attempts, mark_batch, mark_has_details
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.blocks import BlockReader
from queueber.engine.queue.changes import Change, Moved
from queueber.engine.queue.lifecycle import State
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.routes.events import Event, EventLog, Gathered, to_json
from queueber.engine.routes.route import Route
from queueber.engine.topics.append import digest_of
from queueber.filters import RecordView
from queueber.ids import ItemId, made_at_ms
from queueber.limits import FILTER_CONTENTS_BYTES_MAX, MIB, PRIORITY_DEFAULT
from queueber.model import EventPayload, NewItems, On

_BLOCKS_BYTES = 16 * MIB
"""Blocks that are held in memory at once: a change may be about many."""

_NO_ATTRIBUTES: dict[str, str] = {}


class _Item(NamedTuple):
    item_id: ItemId
    key: str
    attributes: Mapping[str, str]
    contents: bytes
    """Empty if no route needs them."""


@dataclass(slots=True)
class _Told:
    """What the items of one change have in common."""

    change: Change
    attempt: int
    """The attempt that was under way, or is next."""
    state: State
    priority: int
    batch: str
    error: str | None
    diff: Callable[[_Item], bytes]


class QueueRoutes:
    """Publishes the changes of one queue; see `Changes`."""

    def __init__(
        self,
        queue: QueueState,
        routes: Iterable[Route],
        log: EventLog,
        when_deleted: Callable[[Transaction[Any], QueueState], None],
    ) -> None:
        self._queue = queue
        self._log = log
        self._when_deleted = when_deleted
        self._by_on: dict[On, list[Route]] = {}
        for each in routes:
            self._by_on.setdefault(each.on, []).append(each)

    @property
    def takes_inserts(self) -> bool:
        return On.INSERT in self._by_on

    def queue_deleted(self, tx: Transaction[Any]) -> None:
        self._when_deleted(tx, self._queue)

    # --- items that come --------------------------------------------------------------------------

    def added(self, tx: Transaction[Any], items: NewItems, ids: Sequence[ItemId]) -> None:
        routes = self._by_on.get(On.INSERT)
        if routes is None:
            return
        gathered = self._log.gathered(tx)
        known: dict[tuple[int, int], _Told] = {}
        for at, item_id in enumerate(ids):
            item = _Item(
                item_id,
                items.keys[at] if items.keys else "",
                items.attributes[at] if items.attributes else _NO_ATTRIBUTES,
                items.contents[at],
            )
            delay_ms = items.delays_ms[at] if items.delays_ms else 0
            priority = items.priorities[at] if items.priorities else PRIORITY_DEFAULT
            told = known.get((delay_ms, priority))
            if told is None:
                told = known[delay_ms, priority] = _told_of_new(
                    items.batch, priority, tx.now_ms + delay_ms if delay_ms else None
                )
            self._tell_all(gathered, routes, told, item)

    # --- items that change ------------------------------------------------------------------------

    def moved(self, tx: Transaction[Any], moves: Sequence[Moved]) -> None:
        wanted = {move.change.on for move in moves} & self._by_on.keys()
        if not wanted:
            return
        gathered = self._log.gathered(tx)
        reader = _Reader(self._queue)
        for move in moves:
            routes = self._by_on.get(move.change.on)
            if routes is None:
                continue
            told = self._told(move)
            needs_contents = any(each.needs_contents for each in routes)
            for item in reader.items(move.run, needs_contents=needs_contents):
                self._tell_all(gathered, routes, told, item)

    def _told(self, move: Moved) -> _Told:
        mark = move.run.mark
        diff = to_json(_diff(move))
        return _Told(
            move.change,
            mark_attempts(mark) + 1,
            move.now,
            decode_mark(mark).priority,
            self._queue.batches.names.name(mark_batch(mark)),
            move.error,
            lambda _: diff,
        )

    # --- events -----------------------------------------------------------------------------------

    def _tell_all(
        self, gathered: Gathered, routes: Sequence[Route], told: _Told, item: _Item
    ) -> None:
        view: RecordView | None = None
        for route in routes:
            if view is None and route.looks_at_items:
                # One for all routes: it parses the contents once.
                view = RecordView(self._fields(told, item), item.attributes, item.contents)
            self._tell(gathered, route, told, item, view)

    def _tell(
        self,
        gathered: Gathered,
        route: Route,
        told: _Told,
        item: _Item,
        view: RecordView | None,
    ) -> None:
        digest: int | None = None
        if route.looks_at_items:
            assert view is not None
            if route.where is not None and not route.where.matches(view):
                return
            if route.partition_by and (text := route.partition_text(view)) is not None:
                digest = digest_of(text)  # a text may be long, and events many
        shown_id = item.item_id.hex()
        own = {
            "queueber.queue": self._queue.name,
            "queueber.op": route.on.value,
            "queueber.change": told.change.word,
            "queueber.id": shown_id,
            "queueber.attempt": str(told.attempt),
            "queueber.payload": route.payload.value,
        }
        wanted = route.payload
        if item.attributes and wanted is EventPayload.FULL:
            joined = {**item.attributes, **own}
            if gathered.has_room_for_attributes(joined):
                own = joined
            else:
                wanted = EventPayload.KEY
        payload, kind = _payload(gathered, wanted, told, item)
        own["queueber.payload"] = kind.value
        gathered.put(route.topic_id, Event(payload, item.key or shown_id, own, digest))

    def _fields(self, told: _Told, item: _Item) -> dict[str, object]:
        """`ITEM_FIELDS`; those without a value are None."""
        return {
            "id": item.item_id.hex(),
            "key": item.key or None,
            "queue": self._queue.name,
            "change": told.change.word,
            "state": told.state.value,
            "attempt": told.attempt,
            "priority": told.priority,
            "batch": told.batch or None,
            "error": told.error,
            "added_at_ms": made_at_ms(item.item_id),
            "bytes": len(item.contents),
        }


def _payload(
    gathered: Gathered, wanted: EventPayload, told: _Told, item: _Item
) -> tuple[bytes, EventPayload]:
    """What the event holds. One that would be too large holds its key."""
    if wanted is EventPayload.FULL and gathered.has_room(len(item.contents)):
        return item.contents, wanted
    if wanted is EventPayload.DIFF:
        diff = told.diff(item)
        if gathered.has_room(len(diff)):
            return diff, wanted
    key = to_json(item.key) if item.key else b"null"
    return b'{"id":"%b","key":%b}' % (item.item_id.hex().encode(), key), EventPayload.KEY


# --- what changed ---------------------------------------------------------------------------------


def _told_of_new(batch: str, priority: int, visible_at_ms: int | None) -> _Told:
    state = State.READY if visible_at_ms is None else State.DELAYED

    def diff(item: _Item) -> bytes:
        fields: dict[str, object] = {
            "state": state.value,
            "attempt": 1,
            "priority": priority,
            "key": item.key or None,
            "batch": batch or None,
            "visible_at_ms": visible_at_ms,
            "attributes": dict(item.attributes) or None,
            "bytes": len(item.contents),
            "contents": _text(item.contents),
        }
        return to_json({name: [None, each] for name, each in fields.items() if each is not None})

    return _Told(Change.ADDED, 1, state, priority, batch, None, diff)


def _text(contents: bytes) -> str | None:
    """Contents as they may stand in JSON; None if they are no text, or too long for it."""
    if len(contents) > FILTER_CONTENTS_BYTES_MAX:
        return None
    try:
        return contents.decode()
    except UnicodeDecodeError:
        return None


def _diff(move: Moved) -> dict[str, list[object]]:
    """The fields that changed, each before and after."""
    before = decode_mark(move.run.mark)
    after = before if move.mark is None else decode_mark(move.mark)
    changed: dict[str, list[object]] = {"state": [move.was.value, move.now.value]}
    if after.attempts != before.attempts:
        changed["attempt"] = [before.attempts + 1, after.attempts + 1]
    if after.group_max != before.group_max:
        changed["group_max"] = [before.group_max or None, after.group_max or None]
    if move.visible_at_ms:
        changed["visible_at_ms"] = [None, move.visible_at_ms]
    if move.error is not None:
        changed["error"] = [move.error_before, move.error]
    return changed


# --- items that are stored ------------------------------------------------------------------------


class _Reader:
    """Reads the items of runs, and holds few blocks in memory."""

    def __init__(self, queue: QueueState) -> None:
        self._queue = queue
        self._blocks: BlockReader = queue.blocks.reader()
        self._bytes = 0

    def items(self, run: Run, *, needs_contents: bool) -> Iterator[_Item]:
        count = run.count
        contents = [b""] * count
        keys, packed = [b""] * count, [b""] * count
        if needs_contents or mark_has_details(run.mark):
            block = self._block(run)
            if needs_contents:
                contents = block.contents(run.at, count)
            if mark_has_details(run.mark):
                keys, packed = block.details(run.at, count)
        for item_id, key, attributes, each in zip(run.ids, keys, packed, contents, strict=True):
            unpacked = unpack_attributes(attributes) if attributes else _NO_ATTRIBUTES
            yield _Item(item_id, key.decode(), unpacked, each)

    def _block(self, run: Run) -> Any:
        if self._bytes > _BLOCKS_BYTES:
            self._blocks, self._bytes = self._queue.blocks.reader(), 0
        self._bytes += run.size
        return self._blocks[run]
