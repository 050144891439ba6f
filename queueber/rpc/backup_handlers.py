"""The methods of backups: begin one, read its files, end it."""

from collections.abc import Awaitable
from typing import Any

from queueber.rpc.calls import Answer, Methods, call, respond_with
from queueber.wire.backups import write_backup


class BackupMethods(Methods):
    @call
    def beginBackup_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        self._session.answers.check()
        begun = self._service.backups.begin_backup(self._session)
        return respond_with(context, "backup", begun, write_backup)

    @call
    def readBackup_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        self._session.answers.check()
        params = context.params
        read = self._service.backups.read_backup(
            params.id, params.file, offset=params.offset, count=params.bytes
        )
        return self._answer_bytes(context, read)

    async def _answer_bytes(self, context: Any, read: Awaitable[bytes]) -> None:
        context.results.data = await read
        self._count(context)

    @call
    async def endBackup_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        context.results.ended = self._service.backups.end_backup(context.params.id)
