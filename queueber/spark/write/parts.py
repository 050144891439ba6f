"""The two methods of a write: tasks build files of their rows (bulk) or add them by calls (rpc)."""

import tempfile
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path

import pyarrow as pa

from queueber import AddedIds, Load, Producer, Queue
from queueber.limits import MIB, PRIORITY_DEFAULT
from queueber.model import Origin, PartRef, Rows, StagedFile
from queueber.tables.new_items import RowLimits, read_rows

_CALL_ROWS = 1000
_CALL_BYTES = 4 * MIB
_CALLS_UNDER_WAY = 8


def stage_files(
    load: Load, ref: PartRef, batches: Iterable[pa.RecordBatch], *, may_share: bool
) -> int:
    """Build the files of a part and give them to the server; returns the number of rows."""
    # Only this method needs RocksDB.
    from queueber.db.bulk.part_writer import PartWriter
    from queueber.db.records.loads import part_directory

    with tempfile.TemporaryDirectory(prefix="queueber-") as temporary:
        shared = _shared_directory(load, part_directory(ref)) if may_share else None
        directory = shared or Path(temporary)

        def hand_over(file: StagedFile) -> None:
            if shared is None:
                path = directory / file.name
                load.stage(ref, file.name, path.read_bytes())
                path.unlink()

        writer = PartWriter(load.facts, ref, directory, hand_over)
        limits = RowLimits(load.facts.item_bytes_max, load.facts.started_at_ms)
        for batch in batches:
            for rows in read_rows(batch, writer.rows, limits):
                writer.add(rows)
        part = writer.finish()
        if part.rows:
            load.finish_part(part)
        return part.rows


def _shared_directory(load: Load, name: str) -> Path | None:
    """The server's directory for the part, if this process can write there; the token proves it."""
    directory = Path(load.facts.directory)
    try:
        if (directory / "token").read_bytes() != load.facts.token:
            return None
        shared = directory / name
        shared.mkdir(exist_ok=True)
        (shared / "probe").touch()
        (shared / "probe").unlink()
    except OSError:
        return None
    return shared


def add_rows(queue: Queue, load: Load, ref: PartRef, batches: Iterable[pa.RecordBatch]) -> int:
    """Add the rows in numbered calls, which a retried task repeats; returns how many rows."""
    producer = queue.producer(f"{load.ref.name}/{ref.partition}", load.ref.epoch)
    under_way: deque[Future[AddedIds]] = deque()
    row = 0
    for batch in batches:
        for start in range(0, batch.num_rows, _CALL_ROWS):
            # Delays count from now, because the server adds the rows now.
            now_ms = int(time.time() * 1000)
            limits = RowLimits(load.facts.item_bytes_max, now_ms, _CALL_BYTES)
            for rows in read_rows(batch.slice(start, _CALL_ROWS), row, limits):
                if len(under_way) == _CALLS_UNDER_WAY:
                    under_way.popleft().result()
                origin = Origin(load.ref, ref.partition, row)
                under_way.append(_add(producer, rows, load.facts.batch or None, origin, now_ms))
                row += len(rows.contents)
    for future in under_way:
        future.result()
    return row


def _add(
    producer: Producer, rows: Rows, batch: str | None, origin: Origin, now_ms: int
) -> "Future[AddedIds]":
    return producer.add_soon(
        rows.contents,
        delay=[max(0, at_ms - now_ms) / 1000 for at_ms in rows.visible_at_ms] or 0,
        priority=rows.priorities or PRIORITY_DEFAULT,
        key=[key or None for key in rows.keys] or None,
        attributes=rows.attributes or None,
        batch=batch,
        origin=origin,
    )
