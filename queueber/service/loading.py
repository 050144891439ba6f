"""Loading: the stage of loads, and their commits, which go on when the caller has gone."""

from collections.abc import Awaitable, Sequence
from functools import partial
from secrets import token_bytes

import structlog

from queueber.db.records.loads import LoadedRecord, LoadRecord
from queueber.engine.kernel.state import QueueState
from queueber.engine.loads.commit import Step, Steps, commit_load
from queueber.engine.loads.loads import (
    abort_load,
    begin_load,
    finish_part,
    is_committing,
    is_finished,
    staging_load,
)
from queueber.engine.loads.part_check import check_file_name, check_part
from queueber.engine.records.batches import batch_name
from queueber.errors import NotFound, QueueberError, Unavailable
from queueber.limits import LOAD_FILE_BYTES, LOAD_TIMEOUT_MS, STORE_RETRY_MS
from queueber.model import LoadInfo, LoadRef, LoadState, Part, PartRef
from queueber.service.core import wake
from queueber.service.loop import Future
from queueber.service.polls import Polls
from queueber.service.validate.items import check_batch
from queueber.service.validate.loads import (
    check_chunk,
    check_load,
    check_part_ref,
    check_timeout_ms,
)

_log = structlog.get_logger("queueber.service")

_TOKEN_BYTES = 16


class Loading(Polls):
    def begin_load(
        self,
        queue: QueueState,
        ref: LoadRef,
        *,
        batch: str,
        timeout_ms: int,
        must_exist: bool = False,
    ) -> Awaitable[LoadInfo]:
        """Begin the load, or find it as it stands; with `must_exist` only the latter."""
        self._check_alive(queue)
        check_load(ref)
        if batch:
            check_batch(batch)
        check_timeout_ms(timeout_ms)
        before = list(queue.loads.values())
        load = begin_load(
            self._engine,
            queue,
            ref,
            batch=batch,
            timeout_ms=timeout_ms or LOAD_TIMEOUT_MS,
            token=token_bytes(_TOKEN_BYTES),
            now_ms=self._clock.now_ms(),
            must_exist=must_exist,
        )
        if isinstance(load, LoadRecord):
            self._stage.prepare(load)
            if all(load is not each for each in before):
                _log.info("load_begun", queue=queue.name, load=ref.name, epoch=ref.epoch)
        self._settle(queue)  # an epoch before it may have ended
        return self._durable(self._shown(queue, load))

    def stage_file(
        self, queue: QueueState, ref: LoadRef, part: PartRef, name: str, offset: int, data: bytes
    ) -> None:
        """Take bytes of a file. They need not be durable before the part is finished."""
        self._check_alive(queue)
        check_load(ref)
        check_part_ref(part)
        check_file_name("file", name)
        check_chunk(data)
        load = staging_load(queue, ref, self._clock.now_ms())
        is_checked = (load.id_head, part) in self._parts_in_check
        if is_checked or is_finished(self._engine, queue, ref, part):
            # A repeated call, which came late, does no harm; another would go unchecked.
            self._stage.check_same(load, part, name, offset, data)
        else:
            self._stage.write(load, part, name, offset, data)

    def finish_part(self, queue: QueueState, ref: LoadRef, part: Part) -> Awaitable[None]:
        self._check_alive(queue)
        check_load(ref)
        check_part_ref(part.ref)
        load = staging_load(queue, ref, self._clock.now_ms())
        check_part(load, queue.prefix, part)
        return self._finish_part(queue, ref, load, part)

    async def _finish_part(
        self, queue: QueueState, ref: LoadRef, load: LoadRecord, part: Part
    ) -> None:
        in_check = load.id_head, part.ref
        self._parts_in_check.append(in_check)
        try:
            await self._run_aside(lambda: self._stage.check(load, part.ref, part.files))
        except QueueberError:
            # The files of a load that has ended meanwhile are gone: that is what to tell then.
            self._check_same_load(queue, ref, load)
            raise
        finally:
            self._parts_in_check.remove(in_check)
        self._check_same_load(queue, ref, load)
        finish_part(self._engine, queue, ref, part, self._clock.now_ms())
        await self._durable(None)

    def _check_same_load(self, queue: QueueState, ref: LoadRef, load: LoadRecord) -> None:
        """Other calls may have come meanwhile: the load must be the one that it was."""
        self._check_alive(queue)
        if staging_load(queue, ref, self._clock.now_ms()).id_head != load.id_head:
            raise NotFound(f"load: {ref.name!r} was dropped meanwhile, and begun anew; join it")

    def commit_load(
        self, queue: QueueState, ref: LoadRef, parts: Sequence[PartRef]
    ) -> Awaitable[LoadInfo]:
        """Make the items of these parts visible. Whoever asks meanwhile waits for the same."""
        self._check_alive(queue)
        check_load(ref)
        for part in parts:
            check_part_ref(part)
        key = queue.queue_id, ref
        task = self._load_commits.get(key)
        if task is None:
            others = [each for (number, _), each in self._load_commits.items() if number == key[0]]
            # A task of its own: once begun, it does not depend on the connection that asked.
            task = self._loop.create_task(self._run_commit(queue, ref, parts, others))
            self._load_commits[key] = task
            task.add_done_callback(partial(self._commit_ended, key))
        return self._wait_commit(task)

    async def _wait_commit(self, task: Future) -> LoadInfo:
        await self._ended(task)
        load: LoadInfo = task.result()
        return load

    async def _ended(self, task: Future) -> None:
        """Wait for a task without being its end when the wait is given up."""
        ended = self._loop.create_future()
        task.add_done_callback(lambda _: wake(ended))
        await ended

    def _commit_ended(self, key: tuple[int, LoadRef], task: Future) -> None:
        del self._load_commits[key]
        if not task.cancelled():
            task.exception()  # whoever waited may have gone; nobody else asks

    async def _run_commit(
        self, queue: QueueState, ref: LoadRef, parts: Sequence[PartRef], others: Sequence[Future]
    ) -> LoadInfo:
        self.gate.enter()
        try:
            # One load of a queue at a time: the search for duplicates must see the others' keys.
            for other in others:
                await self._ended(other)
            loaded = await self._commit_in_the_end(queue, ref, parts)
            self._settle(queue)
            _log.info("load_committed", queue=queue.name, load=ref.name, rows=loaded.rows)
            return await self._durable(self._shown(queue, loaded))
        finally:
            self.gate.leave()

    async def _commit_in_the_end(
        self, queue: QueueState, ref: LoadRef, parts: Sequence[PartRef]
    ) -> LoadedRecord:
        while True:
            steps = commit_load(self._engine, queue, ref, parts, self._clock.now_ms())
            try:
                return await self._run_steps(steps)
            except Unavailable:
                # Once it is recorded that it will be committed, it will, when the disk lets it.
                if not is_committing(queue, ref) or self.gate.is_closed:
                    raise
                await self._pause(STORE_RETRY_MS)

    async def _run_steps(self, steps: Steps) -> LoadedRecord:
        try:
            while True:
                if next(steps) is Step.SYNC:
                    await self._durable(None)
                else:
                    await self._turn()
        except StopIteration as end:
            loaded: LoadedRecord = end.value
            return loaded
        finally:
            steps.close()

    def abort_load(self, queue: QueueState, ref: LoadRef) -> Awaitable[bool]:
        self._check_alive(queue)
        check_load(ref)
        aborted = abort_load(self._engine, queue, ref, self._clock.now_ms())
        if aborted:
            _log.info("load_aborted", queue=queue.name, load=ref.name)
        self._settle(queue)
        return self._durable(aborted)

    def list_loads(self, queue: QueueState) -> list[LoadInfo]:
        self._check_alive(queue)
        return [self._shown(queue, load) for load in queue.loads.values()]

    # --- files of loads that have ended -----------------------------------------------------------

    def take_stale_stage(self) -> str | None:
        """A directory whose load has ended, to be removed."""
        return self._engine.stale_stages.pop() if self._engine.stale_stages else None

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
            batch=batch_name(self._engine, queue, load.batch),
            started_at_ms=load.started_at_ms,
            expires_at_ms=under_way.seen_at_ms + under_way.timeout_ms if under_way else 0,
            rows=load.rows,
            duplicates=load.duplicates if isinstance(load, LoadedRecord) else 0,
            queue_number=queue.queue_id,
            batch_number=load.batch,
            id_head=under_way.id_head if under_way else b"",
            dedup_window_ms=under_way.dedup_window_ms if under_way else 0,
            item_bytes_max=queue.settings.item_bytes_max or self.limits.item_bytes_max,
            file_bytes_max=LOAD_FILE_BYTES,
            directory=str(self._stage.directory(under_way)) if under_way else "",
            token=under_way.token if under_way else b"",
        )
