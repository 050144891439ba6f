"""The methods for whole queues at once: loads bring items in, snapshots are read in parts."""

from typing import Any

from queueber.rpc.calls import Answer, QueueMethods, answer_with, call, respond_with
from queueber.wire.lists import read_columns
from queueber.wire.loads import (
    read_load_ref,
    read_part,
    read_part_ref,
    read_part_refs,
    write_load,
    write_loads,
)
from queueber.wire.snapshots import read_state, write_scan, write_snapshot


class LoadMethods(QueueMethods):
    @call
    def beginLoad_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        request = context.params.req
        load = self._service.loads.begin_load(
            self._queue,
            read_load_ref(request),
            batch=request.batch,
            timeout_ms=request.timeoutMs,
            must_exist=request.mustExist,
        )
        return respond_with(context, "load", load, write_load)

    @call
    async def stageFile_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        request = context.params.req
        self._service.loads.stage_file(
            self._queue,
            read_load_ref(request.load),
            read_part_ref(request.part),
            request.file,
            request.offset,
            request.data,
        )

    @call
    def finishPart_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        request = context.params.req
        return self._service.loads.finish_part(
            self._queue, read_load_ref(request.load), read_part(request)
        )

    @call
    def commitLoad_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        request = context.params.req
        committed = self._service.loads.commit_load(
            self._queue, read_load_ref(request.load), read_part_refs(request.parts)
        )
        return respond_with(context, "load", committed, write_load)

    @call
    def abortLoad_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        aborted = self._service.loads.abort_load(self._queue, read_load_ref(context.params.load))
        return answer_with(context, "aborted", aborted)

    @call
    async def listLoads_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        self._session.answers.check()
        write_loads(context.results, self._service.loads.list_loads(self._queue))
        self._count(context)


class SnapshotMethods(QueueMethods):
    @call
    async def openSnapshot_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        write_snapshot(
            context.results.init("snapshot"), self._service.snapshots.open_snapshot(self._queue)
        )

    @call
    async def scanSnapshot_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        request = context.params.req
        self._session.answers.check()
        items, next_after = self._service.snapshots.scan_snapshot(
            self._queue,
            request.snapshot,
            read_state(request.state),
            after=request.after,
            before=request.before,
            limit=request.limit,
            batch=request.batch,
            without=read_columns(request.without),
        )
        write_scan(context.results.init("resp"), items, next_after)
        self._count(context)

    @call
    async def splitSnapshot_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        asked = context.params
        self._session.answers.check()
        context.results.cuts = self._service.snapshots.split_snapshot(
            self._queue, asked.snapshot, read_state(asked.state), asked.parts
        )
        self._count(context)

    @call
    async def closeSnapshot_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        context.results.closed = self._service.snapshots.close_snapshot(
            self._queue, context.params.id
        )
