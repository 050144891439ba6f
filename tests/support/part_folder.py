"""Parts built in a folder, checked as the server does, and read: no store, and no queue."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from queueber.db.bulk.part_writer import PartWriter
from queueber.db.bulk.staged_files import CLAIMS, Stage
from queueber.db.families import Family
from queueber.db.records.keys import queue_prefix
from queueber.db.records.loads import LoadRecord, part_directory
from queueber.engine.loads.part_check import check_part
from queueber.engine.loads.run_check import check_runs
from queueber.limits import MIB
from queueber.model import LoadInfo, LoadRef, LoadState, Part, PartRef, Rows

QUEUE_NUMBER = 7
PREFIX = queue_prefix(QUEUE_NUMBER)
STARTED_MS = 1_700_000_000_000
WINDOW_MS = 300
LOAD = LoadRecord(
    ref=LoadRef("load"),
    batch=3,
    started_at_ms=STARTED_MS,
    seen_at_ms=STARTED_MS,
    timeout_ms=1,
    forget_at_ms=STARTED_MS + 1,
    id_head=bytes.fromhex("018bcfe568008abc92"),
    dedup_window_ms=WINDOW_MS,
    token=b"",
)


class PartFolder:
    """Where parts are built, checked as the server does, and read."""

    def __init__(self, folder: Path) -> None:
        self.stage = Stage(folder / "loads")
        self.numbers = 0

    def build(
        self,
        load: LoadRecord,
        *rows: Rows,
        partition: int = 0,
        buffered_rows: int = 1000,
        sorted_entries: int = 1000,
        file_bytes: int = MIB,
    ) -> Part:
        self.numbers += 1
        ref = PartRef(partition, f"attempt {self.numbers}")
        writer = PartWriter(
            plan(load, file_bytes),
            ref,
            self.directory(load, ref),
            buffered_rows=buffered_rows,
            sorted_entries=sorted_entries,
        )
        for each in rows:
            writer.add(each)
        part = writer.finish()
        check_part(load, PREFIX, part)
        self.stage.check(load, ref, part.files)
        check_runs(load, PREFIX, part, partial(self.stage.entries, load, part))
        return part

    def directory(self, load: LoadRecord, ref: PartRef) -> Path:
        directory = self.stage.directory(load) / part_directory(ref)
        directory.mkdir(parents=True)
        return directory

    def entries(self, load: LoadRecord, part: Part, family: str) -> list[tuple[bytes, bytes]]:
        """In order of key; `claims` are read as what they are not, a family."""
        if family == CLAIMS:
            files = [replace(each, family="keys") for each in part.files if each.family == CLAIMS]
            part, family = replace(part, files=files), "keys"
        return list(self.stage.entries(load, part, FAMILIES[family]))


FAMILIES = {family.family_name: family for family in Family}


def plan(load: LoadRecord, file_bytes: int = MIB) -> LoadInfo:
    return LoadInfo(
        ref=load.ref,
        state=LoadState.STAGING,
        batch="",
        started_at_ms=load.started_at_ms,
        expires_at_ms=0,
        rows=0,
        duplicates=0,
        queue_number=QUEUE_NUMBER,
        batch_number=load.batch,
        id_head=load.id_head,
        dedup_window_ms=load.dedup_window_ms,
        item_bytes_max=0,
        file_bytes_max=file_bytes,
        directory="",
        token=b"",
    )
