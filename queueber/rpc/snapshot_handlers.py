"""The methods about snapshots: a queue as it was at one moment."""

from typing import Any

from queueber.rpc.calls import QueueMethods, call
from queueber.wire.lists import read_columns
from queueber.wire.snapshots import read_state, write_scan, write_snapshot


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
