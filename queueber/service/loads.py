"""Loads: staging their files, and their commits, which go on when the caller has gone."""

from collections.abc import Awaitable, Sequence
from functools import partial
from secrets import token_bytes

import structlog

from queueber.db.bulk.staged_files import Stage
from queueber.db.records.loads import LoadedRecord, LoadRecord
from queueber.engine.kernel.transaction import Step, Steps
from queueber.engine.loads.commit import commit_load
from queueber.engine.loads.loads import Loads as QueueLoads
from queueber.engine.loads.part_check import check_file_name, check_part
from queueber.engine.loads.run_check import check_runs
from queueber.engine.loads.staging import abort_load, begin_load, finish_part, touch_load
from queueber.engine.queue.queue_state import QueueState
from queueber.errors import NotFound, QueueberError, Unavailable
from queueber.limits import LOAD_FILE_BYTES, LOAD_TIMEOUT_MS, STORE_RETRY_MS
from queueber.model import LoadInfo, LoadRef, LoadState, Part, PartRef
from queueber.service.commit_hold import CommitHold
from queueber.service.loop import Future
from queueber.service.session import QueueHandle
from queueber.service.shell import Shell, wake
from queueber.service.validate.arguments import (
    check_chunk,
    check_load,
    check_part_ref,
    check_timeout_ms,
)
from queueber.service.validate.items import check_batch

_log = structlog.get_logger("queueber.service")

_TOKEN_BYTES = 16


class Loads:
    def __init__(self, shell: Shell, commit_hold: CommitHold) -> None:
        self._shell = shell
        self._commit_hold = commit_hold
        self._stage = Stage(shell.engine.store.loads_path)
        self._commits: dict[tuple[int, LoadRef], Future] = {}
        self._parts_in_check: list[tuple[bytes, PartRef]] = []
        """Each as often as somebody waits for it."""
        under_way = {load.record.directory for loads in shell.engine.loads for load in loads}
        # A crash came before the files of the others were removed.
        shell.engine.loads.stale_directories += self._stage.others(under_way)

    def begin_load(
        self,
        queue: QueueHandle,
        ref: LoadRef,
        *,
        batch: str,
        timeout_ms: int,
        must_exist: bool = False,
    ) -> Awaitable[LoadInfo]:
        """Begin the load, or find it as it stands; with `must_exist` only the latter."""
        queue.check_alive()
        check_load(ref)
        if batch:
            check_batch(batch)
        check_timeout_ms(timeout_ms)
        shell, state = self._shell, queue.state
        loads = self._of(queue)
        is_known = loads.find(ref) is not None
        load = shell.run(
            state,
            partial(
                begin_load,
                batch=batch,
                timeout_ms=timeout_ms or (0 if must_exist else LOAD_TIMEOUT_MS),
                token=token_bytes(_TOKEN_BYTES),
                must_exist=must_exist,
            ),
            loads,
            ref,
        )
        if isinstance(load, LoadRecord):
            self._stage.prepare(load)
            if not is_known:
                self._log(queue, "load_begun", ref, epoch=ref.epoch)
        shell.after_write(state)  # an epoch before it may have ended
        return shell.durable(self._shown(state, load))

    def stage_file(
        self, queue: QueueHandle, ref: LoadRef, part: PartRef, name: str, offset: int, data: bytes
    ) -> None:
        """Take bytes of a file. They need not be durable before the part is finished."""
        check_part_ref(part)
        check_file_name("file", name)
        check_chunk(data)
        load = self._touch(queue, ref)
        is_checked = (load.id_head, part) in self._parts_in_check
        if is_checked or self._of(queue).is_finished(ref, part):
            # A repeated call, which came late, does no harm; other bytes would not be checked.
            self._stage.check_same(load, part, name, offset, data)
        else:
            self._stage.write(load, part, name, offset, data)

    def finish_part(self, queue: QueueHandle, ref: LoadRef, part: Part) -> Awaitable[None]:
        check_part_ref(part.ref)
        load = self._touch(queue, ref)
        check_part(load, queue.state.prefix, part)
        return self._finish_part(queue, ref, load, part)

    async def _finish_part(
        self, queue: QueueHandle, ref: LoadRef, load: LoadRecord, part: Part
    ) -> None:
        in_check = load.id_head, part.ref
        self._parts_in_check.append(in_check)
        try:
            await self._shell.in_background(partial(self._check_files, queue.state, load, part))
        except QueueberError:
            # The files of a load that has ended meanwhile are gone: that is the error to report.
            self._check_same_load(queue, ref, load)
            raise
        finally:
            self._parts_in_check.remove(in_check)
        self._check_same_load(queue, ref, load)
        loads = self._of(queue)
        await self._shell.write(queue, finish_part, loads, ref, part, event="part_finished")

    def _check_files(self, queue: QueueState, load: LoadRecord, part: Part) -> None:
        """May run in a thread of its own."""
        self._stage.check(load, part.ref, part.files)
        check_runs(load, queue.prefix, part, partial(self._stage.entries, load, part))

    def _of(self, queue: QueueHandle) -> QueueLoads:
        queue.check_alive()
        return self._shell.engine.loads.of(queue.state)

    def _touch(self, queue: QueueHandle, ref: LoadRef) -> LoadRecord:
        check_load(ref)
        return self._shell.run(queue.state, touch_load, self._of(queue), ref)

    def _check_same_load(self, queue: QueueHandle, ref: LoadRef, load: LoadRecord) -> None:
        """Other calls may have come meanwhile: the load must be the one that it was."""
        if self._touch(queue, ref).id_head != load.id_head:
            raise NotFound(f"load: {ref.name!r} was dropped meanwhile, and begun anew; join it")

    # --- commits ----------------------------------------------------------------------------------

    def commit_load(
        self, queue: QueueHandle, ref: LoadRef, parts: Sequence[PartRef]
    ) -> Awaitable[LoadInfo]:
        """Make the items of these parts visible. Whoever asks meanwhile waits for the same."""
        queue.check_alive()
        check_load(ref)
        for part in parts:
            check_part_ref(part)
        key = queue.state.queue_id, ref
        task = self._commits.get(key)
        if task is None:
            others = [each for (number, _), each in self._commits.items() if number == key[0]]
            # A task of its own: once begun, it does not depend on the connection that asked.
            task = self._shell.loop.create_task(self._run_commit(queue, ref, parts, others))
            self._commits[key] = task
            task.add_done_callback(partial(self._commit_ended, key))
        return self._wait_commit(task)

    async def _wait_commit(self, task: Future) -> LoadInfo:
        await self._ended(task)
        load: LoadInfo = task.result()
        return load

    async def _ended(self, task: Future) -> None:
        """Wait for a task, and do not cancel it when the wait is cancelled."""
        ended = self._shell.loop.create_future()
        task.add_done_callback(lambda _: wake(ended))
        await ended

    def _commit_ended(self, key: tuple[int, LoadRef], task: Future) -> None:
        del self._commits[key]
        if not task.cancelled():
            task.exception()  # whoever waited may have gone; nobody else asks

    async def _run_commit(
        self, queue: QueueHandle, ref: LoadRef, parts: Sequence[PartRef], others: Sequence[Future]
    ) -> LoadInfo:
        shell, state = self._shell, queue.state
        shell.admission.enter()
        try:
            # One load of a queue at a time: the search for duplicates must see the others' keys.
            for other in others:
                await self._ended(other)
            try:
                async with self._commit_hold.commit():
                    loaded = await self._commit_in_the_end(queue, ref, parts)
            finally:
                # A commit that fails may have forgotten what was due before it failed.
                if not state.is_deleted:
                    shell.after_write(state)
            self._log(queue, "load_committed", ref, rows=loaded.rows)
            return await shell.durable(self._shown(state, loaded))
        finally:
            shell.admission.leave()

    async def _commit_in_the_end(
        self, queue: QueueHandle, ref: LoadRef, parts: Sequence[PartRef]
    ) -> LoadedRecord:
        shell = self._shell
        while True:
            loads = self._of(queue)
            steps = commit_load(shell.engine.kernel, loads, ref, parts, shell.clock.now_ms())
            try:
                return await self._run_steps(steps)
            except Unavailable:
                # Once it is recorded that it will be committed, it will, when the disk lets it.
                load = loads.find(ref)
                if load is None or not load.is_intended or shell.admission.is_closed:
                    raise
                await shell.sleep(STORE_RETRY_MS)

    async def _run_steps(self, steps: Steps[LoadedRecord]) -> LoadedRecord:
        try:
            while True:
                if next(steps) is Step.SYNC:
                    await self._shell.durable(None)
                else:
                    await self._shell.next_turn()
        except StopIteration as end:
            loaded: LoadedRecord = end.value
            return loaded
        finally:
            steps.close()

    def abort_load(self, queue: QueueHandle, ref: LoadRef) -> Awaitable[bool]:
        check_load(ref)
        return self._shell.write(
            queue,
            abort_load,
            self._of(queue),
            ref,
            event="load_aborted",
            facts=lambda is_aborted: {"load": ref.name} if is_aborted else None,
        )

    def list_loads(self, queue: QueueHandle) -> list[LoadInfo]:
        queue.check_alive()
        return [self._shown(queue.state, load.record) for load in self._of(queue)]

    def _log(self, queue: QueueHandle, event: str, ref: LoadRef, **facts: object) -> None:
        self._shell.log(queue.session, event, queue.name, {"load": ref.name, **facts})

    # --- files of loads that have ended -----------------------------------------------------------

    def take_stale_stage(self) -> str | None:
        """A directory whose load has ended, to be removed."""
        stale = self._shell.engine.loads.stale_directories
        return stale.pop() if stale else None

    def remove_stage(self, directory: str) -> None:
        """May run in a thread of its own."""
        self._stage.remove(directory)

    def _shown(self, queue: QueueState, load: LoadRecord | LoadedRecord) -> LoadInfo:
        state = LoadState.COMMITTED
        if isinstance(load, LoadRecord):
            state = LoadState.COMMITTING if load.is_committing else LoadState.STAGING
        under_way = load if isinstance(load, LoadRecord) else None
        return LoadInfo(
            ref=load.ref,
            state=state,
            batch=queue.batches.names.name(load.batch),
            started_at_ms=load.started_at_ms,
            expires_at_ms=under_way.seen_at_ms + under_way.timeout_ms if under_way else 0,
            rows=load.rows,
            duplicates=load.duplicates if isinstance(load, LoadedRecord) else 0,
            queue_number=queue.queue_id,
            batch_number=load.batch,
            id_head=under_way.id_head if under_way else b"",
            dedup_window_ms=under_way.dedup_window_ms if under_way else 0,
            item_bytes_max=queue.settings.item_bytes_max or self._shell.limits.item_bytes_max,
            file_bytes_max=LOAD_FILE_BYTES,
            directory=str(self._stage.directory(under_way)) if under_way else "",
            token=under_way.token if under_way else b"",
        )
