"""A rig that loads: parts are built, checked and finished beside its store, and commits run."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from queueber.db.bulk.staged_files import Stage
from queueber.db.records.loads import LoadedRecord, LoadRecord
from queueber.db.store.rocks import RocksStore
from queueber.engine.kernel.transaction import Step, Steps
from queueber.engine.loads.part_check import check_part
from queueber.engine.loads.run_check import check_runs
from queueber.engine.open import Engine, open_engine
from queueber.engine.queue.queue_state import QueueState
from queueber.ids import IdSource
from queueber.limits import HOUR_MS, LOAD_FILE_BYTES
from queueber.model import LoadRef, Part, PartRef, QueueSettings, Rows
from tests.support.folders import copy_open_store, remove_folder
from tests.support.loading import build_part, run_commit
from tests.support.operations import begin_load, commit_load, finish_part, loads_under_way
from tests.support.rig import Rig

TOKEN = bytes(range(16))


def stage_part(
    engine: Engine,
    queue: QueueState,
    load: LoadRecord,
    ref: PartRef,
    *rows: Rows,
    now_ms: int,
    sorted_entries: int = 1000,
    file_bytes: int = LOAD_FILE_BYTES,
    buffered_rows: int = 1000,
) -> Part:
    """Build a part, check it as the server does, and finish it."""
    part = build_part(
        engine,
        queue,
        load,
        ref,
        *rows,
        sorted_entries=sorted_entries,
        file_bytes=file_bytes,
        buffered_rows=buffered_rows,
    )
    stage = Stage(engine.store.loads_path)
    check_part(load, queue.prefix, part)
    stage.check(load, ref, part.files)
    check_runs(load, queue.prefix, part, partial(stage.entries, load, part))
    finish_part(engine, queue, load.ref, part, now_ms)
    return part


class LoadRig(Rig):
    def __init__(self, settings: QueueSettings | None = None) -> None:
        super().__init__(settings)
        self._copies = 0
        self._synced: dict[str, int] = {}

    # --- operations, now --------------------------------------------------------------------------

    def begin(
        self, name: str = "load", *, epoch: int = 0, batch: str = "", timeout_ms: int = HOUR_MS
    ) -> LoadRecord:
        begun = self.begin_or_find(name, epoch=epoch, batch=batch, timeout_ms=timeout_ms)
        assert isinstance(begun, LoadRecord)
        return begun

    def begin_or_find(
        self, name: str = "load", *, epoch: int = 0, batch: str = "", timeout_ms: int = HOUR_MS
    ) -> LoadRecord | LoadedRecord:
        return begin_load(
            self.engine,
            self.queue,
            LoadRef(name, epoch),
            batch=batch,
            timeout_ms=timeout_ms,
            token=TOKEN,
            now_ms=self.now_ms,
        )

    def stage(
        self,
        load: LoadRecord,
        *rows: Rows,
        partition: int = 0,
        attempt: str = "a",
        sorted_entries: int = 1000,
        file_bytes: int = LOAD_FILE_BYTES,
        buffered_rows: int = 1000,
    ) -> PartRef:
        return stage_part(
            self.engine,
            self.queue,
            load,
            PartRef(partition, attempt),
            *rows,
            now_ms=self.now_ms,
            sorted_entries=sorted_entries,
            file_bytes=file_bytes,
            buffered_rows=buffered_rows,
        ).ref

    def commit_steps(self, load: LoadRecord, *refs: PartRef) -> Steps[LoadedRecord]:
        return commit_load(self.engine, self.queue, load.ref, refs, self.now_ms)

    def commit(self, load: LoadRecord, *refs: PartRef) -> LoadedRecord:
        return run_commit(self.engine, self.commit_steps(load, *refs))

    def load(self, *rows: Rows, name: str = "load", batch: str = "") -> LoadedRecord:
        """A load of one part, from its begin to its commit."""
        load = self.begin(name, batch=batch)
        return self.commit(load, self.stage(load, *rows))

    def until_intent(self, steps: Steps[LoadedRecord]) -> None:
        """Run a commit up to where its intent is written and synced."""
        while next(steps) is not Step.SYNC:
            pass
        self.sync()

    def directory(self, load: LoadRecord) -> Path:
        return self.store.loads_path / load.directory

    # --- what there is ----------------------------------------------------------------------------

    def loads_memory(self) -> tuple[dict[bytes, LoadRecord], bool, list[str]]:
        under_way = loads_under_way(self.engine, self.queue)
        return under_way, self.queue.keys.is_frozen, list(self.engine.loads.stale_directories)

    def polled_contents(self, count: int = 1000) -> list[bytes]:
        """What polls find, until they find nothing."""
        found: list[bytes] = []
        while polled := self.poll(count).contents:
            found += polled
        return found

    # --- crashes ----------------------------------------------------------------------------------

    def sync(self) -> None:
        self.store.sync()
        self._synced = {log.name: log.stat().st_size for log in self._logs()}

    def crash(self) -> None:
        """A killed server: its files stay as they are, and the next one opens them."""
        self._open_copy(lambda copy: None)

    def lose_power(self) -> None:
        """The same, but of the last log only what was synced is left.

        RocksDB syncs a log before it writes files of what is in it, so earlier logs are whole.
        """
        last = self._logs()[-1].name
        kept = self._synced.get(last, 0)

        def cut(copy: Path) -> None:
            with (copy / last).open("r+b") as log:
                log.truncate(kept)

        self._open_copy(cut)

    def _logs(self) -> list[Path]:
        return sorted(self.store.loads_path.parent.glob("*.log"))

    def _open_copy(self, damage: Callable[[Path], object]) -> None:
        self._copies += 1
        source, copy = self.store.loads_path.parent, self.folder / f"copy{self._copies}"
        copy_open_store(source, copy)
        damage(copy)
        self.store.close()
        remove_folder(source)
        self.store = RocksStore(copy)
        self.engine = open_engine(self.store, IdSource(self.random))
