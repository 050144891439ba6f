"""Commit a load: its parts become items of the queue, all at once.

    check the parts ─▶ find duplicates ─▶ record the intent ─▶ take in the files ─▶ conclude
                                          (and sync it)        items first

RocksDB takes in files one family at a time. Before the intent nothing has changed. From then on the
load is finished, by this server or by the next one that opens the store: files that were taken in
already are passed over. What makes items visible is taken in together with the last batch, in one
step, so that nobody sees a part of it.
"""

from collections.abc import Generator, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path

from queueber.db.bulk.sst import CLAIMS
from queueber.db.families import Family
from queueber.db.records.batches import ids_digest
from queueber.db.records.dedup_keys import decode_key_entry
from queueber.db.records.keys import due_part, time_part
from queueber.db.records.loads import (
    Dropped,
    LoadedRecord,
    LoadRecord,
    decode_part,
    encode_loaded,
    load_digest,
    loaded_digest,
    loaded_key,
    part_directory,
    part_key,
)
from queueber.db.records.marks import mark_size
from queueber.db.records.retention import FORGET_LOADED
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change
from queueber.engine.loads.duplicates import DuplicateSearch
from queueber.engine.loads.loads import (
    find_committed,
    is_commit_under_way,
    is_committing,
    staging_load,
)
from queueber.engine.queue.places import take_waiting
from queueber.engine.queue.quota import check_room
from queueber.engine.records.batches import count_loaded
from queueber.engine.records.reminders import drop_forget_entry, remember_to_forget
from queueber.engine.records.retention import forget
from queueber.errors import Aborted, InvalidArgument, NotFound, Unavailable
from queueber.ids import PARTITION_BYTES, made_at_ms
from queueber.limits import LOAD_KEEP_MS, LOAD_PARTS_MAX, SWEEP_SLICE_ITEMS
from queueber.model import LoadRef, Part, PartRef

_UNSEEN = (Family.ITEMS, Family.PLACES)
"""What nobody comes upon while no entry names it."""
_SEEN = (Family.KEYS, Family.FORGET, Family.DELAYED, Family.VISIBILITY_INDEX)


_CHECKED_AT_ONCE = 100
"""Parts whose files are looked for in one step: about a millisecond."""


class Step(Enum):
    """What is to happen before a commit goes on."""

    TURN = "let others have a turn"
    SYNC = "make durable what was written"


Steps = Generator[Step, None, LoadedRecord]


def commit_load(
    engine: Engine, queue: QueueState, ref: LoadRef, refs: Sequence[PartRef], now_ms: int
) -> Steps:
    """Commit these parts, a step at a time; ends with what is remembered of the load.

    Given up before the intent, by an error or by whoever runs it, it has changed nothing.
    """
    if (loaded := _look(engine, queue, ref, now_ms)) is not None:
        return loaded
    if not is_committing(queue, ref):
        yield from _forget_what_is_due(engine, queue, now_ms)
        # Others had their turn.
        if (loaded := _look(engine, queue, ref, now_ms)) is not None:
            return loaded
    queue.committing = load_digest(ref.name)
    try:
        if not is_committing(queue, ref):
            yield from _record_intent(engine, queue, ref, refs, now_ms)
            yield Step.SYNC
        # Else the store refused it midway, and it goes on where it was.
        return (yield from _finish(engine, queue, queue.loads[queue.committing]))
    finally:
        queue.committing = b""
        queue.keys_are_frozen = queue.keys_are_frozen and is_committing(queue, ref)
        if not queue.is_deleted:
            # What came due meanwhile has waited.
            engine.agenda.schedule(queue.queue_id, queue.counters.forget_due_ms)


def _look(engine: Engine, queue: QueueState, ref: LoadRef, now_ms: int) -> LoadedRecord | None:
    """What is remembered of the load if it is committed; raises when it cannot be committed now."""
    if (loaded := find_committed(engine, queue, ref)) is not None:
        return loaded
    if not is_committing(queue, ref):
        staging_load(queue, ref, now_ms)
    if queue.committing == load_digest(ref.name):
        raise Aborted(f"load: {ref.name!r} is being committed")
    if is_commit_under_way(queue) and not is_committing(queue, ref):
        # One at a time: a search for duplicates would not see the keys of another load.
        raise Unavailable(
            f"another load is being committed in queue {queue.name!r}; send the call again in a "
            "moment"
        )
    return None


def _record_intent(
    engine: Engine, queue: QueueState, ref: LoadRef, refs: Sequence[PartRef], now_ms: int
) -> Generator[Step, None, None]:
    digest = load_digest(ref.name)
    load = queue.loads[digest]
    parts = _read_parts(engine, queue, load, refs)
    check_room(queue, sum(part.rows for part in parts), sum(part.contents_bytes for part in parts))
    yield from _check_files(engine, queue, load, parts)
    dropped = yield from _find_duplicates(engine, queue, load, parts, now_ms)
    _check_alive(queue)
    intent = replace(
        queue.loads[digest],
        is_committing=True,
        seen_at_ms=now_ms,
        parts=[part_key(digest, part.ref) for part in parts],
        dropped=dropped,
    )
    change = Change(engine, queue)
    change.put_load(digest, intent)
    change.commit()


def finish_commits(engine: Engine) -> None:
    """Finish what a crash has left half committed."""
    for queue in engine.queues.values():
        for load in [each for each in queue.loads.values() if each.is_committing]:
            for _ in _finish(engine, queue, load):
                pass
            engine.store.sync()


def _read_parts(
    engine: Engine, queue: QueueState, load: LoadRecord, refs: Sequence[PartRef]
) -> list[Part]:
    if len(refs) > LOAD_PARTS_MAX:
        raise InvalidArgument(f"parts: {len(refs)} are too many; the limit is {LOAD_PARTS_MAX}")
    if len({ref.partition for ref in refs}) < len(refs):
        raise InvalidArgument("parts: two attempts at one partition; name the one that counts")
    digest = load_digest(load.ref.name)
    keys = [queue.prefix + part_key(digest, ref) for ref in refs]
    stored = engine.store.get_many(Family.LOADS, keys) if keys else []
    for ref, value in zip(refs, stored, strict=True):
        if value is None:
            raise InvalidArgument(
                f"parts: attempt {ref.attempt!r} at partition {ref.partition} was not finished"
            )
    return sorted((decode_part(value or b"") for value in stored), key=lambda p: p.ref.partition)


def _check_alive(queue: QueueState) -> None:
    if queue.is_deleted:
        raise NotFound(f"queue {queue.name!r} was deleted while the load was committed")


def _check_files(
    engine: Engine, queue: QueueState, load: LoadRecord, parts: Sequence[Part]
) -> Generator[Step, None, None]:
    """After the intent a file that is missing would keep the store from being opened."""
    directory = engine.store.loads_path / load.directory
    for count, part in enumerate(parts, 1):
        for file in part.files:
            if not (directory / part_directory(part.ref) / file.name).is_file():
                raise InvalidArgument(
                    f"parts: attempt {part.ref.attempt!r} at partition {part.ref.partition} has "
                    f"lost its file {file.name!r}; stage it again"
                )
        if count % _CHECKED_AT_ONCE == 0:
            yield Step.TURN
            _check_alive(queue)


def _forget_what_is_due(
    engine: Engine, queue: QueueState, now_ms: int
) -> Generator[Step, None, None]:
    """Keys whose time is over are no duplicates, and must not be forgotten after they come anew.

    It is done before the load is marked: forgetting may have to write the load's own record.
    """
    while (
        queue.counters.forget_due_ms <= now_ms
        and forget(engine, queue, now_ms, SWEEP_SLICE_ITEMS)[0]
    ):
        yield Step.TURN
        _check_alive(queue)


def _find_duplicates(
    engine: Engine, queue: QueueState, load: LoadRecord, parts: Sequence[Part], now_ms: int
) -> Generator[Step, None, list[Dropped]]:
    keys = sum(part.keys for part in parts)
    if not keys:
        return []
    queue.keys_are_frozen = True
    search = DuplicateSearch(engine.store, queue, load, now_ms)
    claims = [path for _, _, path in _paths(engine, load, parts, CLAIMS)]
    for _ in search.run(claims, engine.store.loads_path / load.directory / "search"):
        yield Step.TURN
        _check_alive(queue)
    if search.claims != keys:
        raise InvalidArgument(f"keys: {keys} were announced, but there are {search.claims} claims")
    return search.dropped


def _paths(
    engine: Engine, load: LoadRecord, parts: Sequence[Part], family: str
) -> list[tuple[Part, bytes, Path]]:
    """The files of a family with their first keys."""
    directory = engine.store.loads_path / load.directory
    return [
        (part, file.first_key, directory / part_directory(part.ref) / file.name)
        for part in parts
        for file in part.files
        if file.family == family
    ]


def _finish(engine: Engine, queue: QueueState, load: LoadRecord) -> Steps:
    _check_alive(queue)
    keys = [queue.prefix + key for key in load.parts]
    stored = engine.store.get_many(Family.LOADS, keys) if keys else []
    parts = [decode_part(value or b"") for value in stored]
    for family in _UNSEEN:
        for _, first_key, path in _paths(engine, load, parts, family.family_name):
            _check_alive(queue)
            engine.store.take_in(family, [(path, first_key)])
            yield Step.TURN
    _check_alive(queue)
    for family in _SEEN:
        files = _paths(engine, load, parts, family.family_name)
        engine.store.take_in(family, [(path, first_key) for _, first_key, path in files])
    return _conclude(engine, queue, load, parts)


def _conclude(
    engine: Engine, queue: QueueState, load: LoadRecord, parts: Sequence[Part]
) -> LoadedRecord:
    """The last batch: from here on the items are there, for all to see."""
    # As it is now: its entry in `forget` may have been put off meanwhile.
    load = queue.loads[load_digest(load.ref.name)]
    now_ms, counters_due = load.seen_at_ms, load.started_at_ms + load.dedup_window_ms
    change = Change(engine, queue)
    counters = change.counters
    rows = sum(part.rows for part in parts) - len(load.dropped)
    counters.added_total += rows
    counters.contents_bytes += sum(part.contents_bytes for part in parts)
    _count_places(queue, change, load, parts)
    if keys := sum(part.keys for part in parts):
        counters.forgets += keys - len(load.dropped)
        counters.forget_due_ms = min(counters.forget_due_ms, counters_due)
        change.look_at(counters_due)
    if load.dropped:
        _drop(engine, queue, change, load, counters_due)
    if load.batch:
        digest = sum(int.from_bytes(part.digest) for part in parts)
        digest -= ids_digest([each.item_id for each in load.dropped])
        # Let go first: as with an add, a batch that gets nothing is there, and complete.
        change.batch_record(load.batch).loads -= 1
        count_loaded(queue, change, load.batch, rows, digest, now_ms)

    loaded = LoadedRecord(
        ref=load.ref,
        batch=load.batch,
        started_at_ms=load.started_at_ms,
        committed_at_ms=now_ms,
        forget_at_ms=now_ms + LOAD_KEEP_MS,
        rows=rows,
        duplicates=len(load.dropped),
    )
    _remember(engine, queue, change, load, loaded)
    change.commit()
    return loaded


def _remember(
    engine: Engine, queue: QueueState, change: Change, load: LoadRecord, loaded: LoadedRecord
) -> None:
    """The load is under way no more; what became of it is known for a while."""
    drop_forget_entry(queue, change, load.forget_at_ms, load_digest(load.ref.name))
    change.end_load(load_digest(load.ref.name))
    digest = loaded_digest(load.ref.name)
    earlier = find_committed(engine, queue, LoadRef(load.ref.name))
    if earlier is not None:
        drop_forget_entry(queue, change, earlier.forget_at_ms, digest)
    change.batch.put(Family.LOADS, queue.prefix + loaded_key(digest), encode_loaded(loaded))
    remember_to_forget(queue, change, loaded.forget_at_ms, digest, FORGET_LOADED)


def _count_places(
    queue: QueueState, change: Change, load: LoadRecord, parts: Sequence[Part]
) -> None:
    at_ms = time_part(load.started_at_ms)
    for part in parts:
        ids = load.id_head + part.ref.partition.to_bytes(PARTITION_BYTES)
        for level, count in enumerate(part.levels):
            if count:
                change.load_ready(level, count, at_ms + ids + bytes(4))
        if part.delayed:
            change.load_delayed(part.delayed, part.delayed_first_ms)


def _drop(
    engine: Engine, queue: QueueState, change: Change, load: LoadRecord, forget_at_ms: int
) -> None:
    """Take the duplicates out again, and let their keys be those of the first."""
    batch, prefix = change.batch, queue.prefix
    places = engine.store.get_many(Family.PLACES, [prefix + each.item_id for each in load.dropped])
    for each, place in zip(load.dropped, places, strict=True):
        at_ms = made_at_ms(each.item_id) if place is None else int.from_bytes(place)
        mark = take_waiting(engine, queue, change, due_part(at_ms, each.item_id))
        batch.delete(Family.ITEMS, prefix + each.item_id)
        change.counters.contents_bytes -= mark_size(mark or b"")
        batch.put(Family.KEYS, prefix + each.digest, each.entry)
        if decode_key_entry(each.entry)[1] != forget_at_ms:
            batch.delete(Family.FORGET, prefix + due_part(forget_at_ms, each.digest))
    change.counters.duplicates_total += len(load.dropped)
