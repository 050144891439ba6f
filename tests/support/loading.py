"""Loads: parts built and staged, beside a store or through a client; commits run to their end."""

import tempfile
from pathlib import Path

from queueber.client import Load as ClientLoad
from queueber.db.bulk.part_writer import PartWriter
from queueber.db.records.loads import LoadedRecord, LoadRecord, part_directory
from queueber.engine.kernel.transaction import Step, Steps
from queueber.engine.open import Engine
from queueber.engine.queue.queue_state import QueueState
from queueber.limits import LOAD_FILE_BYTES
from queueber.model import LoadInfo, LoadState, Part, PartRef, Rows


def build_part(
    engine: Engine,
    queue: QueueState,
    load: LoadRecord,
    ref: PartRef,
    *rows: Rows,
    sorted_entries: int = 1000,
    file_bytes: int = LOAD_FILE_BYTES,
    buffered_rows: int = 1000,
) -> Part:
    """The part's files, where the store looks for them."""
    directory = engine.store.loads_path / load.directory / part_directory(ref)
    directory.mkdir(parents=True, exist_ok=True)
    plan = plan_of(queue, load, file_bytes)
    writer = PartWriter(
        plan, ref, directory, buffered_rows=buffered_rows, sorted_entries=sorted_entries
    )
    for each in rows:
        writer.add(each)
    return writer.finish()


def plan_of(queue: QueueState, load: LoadRecord, file_bytes: int) -> LoadInfo:
    """What a client is told of the load."""
    return LoadInfo(
        ref=load.ref,
        state=LoadState.STAGING,
        batch="",
        started_at_ms=load.started_at_ms,
        expires_at_ms=0,
        rows=0,
        duplicates=0,
        queue_number=queue.queue_id,
        batch_number=load.batch,
        id_head=load.id_head,
        dedup_window_ms=load.dedup_window_ms,
        item_bytes_max=0,
        file_bytes_max=file_bytes,
        directory="",
        token=load.token,
    )


def run_commit(engine: Engine, steps: Steps[LoadedRecord]) -> LoadedRecord:
    """All steps of a commit, one after the other."""
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            loaded: LoadedRecord = end.value
            return loaded
        if step is Step.SYNC:
            engine.store.sync()


def built_part(load: LoadInfo, ref: PartRef, *rows: Rows) -> tuple[Part, dict[str, bytes]]:
    """A part, and what its files hold, by their names. Rows of each call are written at once."""
    with tempfile.TemporaryDirectory(prefix="queueber-") as folder:
        writer = PartWriter(load, ref, Path(folder), buffered_rows=1)
        for each in rows:
            writer.add(each)
        part = writer.finish()
        return part, {file.name: (Path(folder) / file.name).read_bytes() for file in part.files}


def stage_part(load: ClientLoad, ref: PartRef, *rows: Rows) -> Part:
    """Build a part here, send its files to the server, and finish it."""
    part, files = built_part(load.facts, ref, *rows)
    for name, held in files.items():
        load.stage(ref, name, held)
    load.finish_part(part)
    return part
