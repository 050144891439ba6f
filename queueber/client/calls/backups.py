"""Calls about backups. A backup that nobody reads expires, so all but its end may be repeated."""

from concurrent.futures import Future

from queueber.client.transport.connection import Connection
from queueber.model import BackupInfo
from queueber.wire.backups import read_backup

_BEGIN_SECONDS = 600.0
"""How long the server may take: it writes out what is only in memory, after waiting for a load."""


class BackupCalls:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def begin(self) -> "Future[BackupInfo]":
        return self._connection.ask(
            lambda link: link.service.beginBackup(),
            lambda response: read_backup(response.backup),
            work_seconds=_BEGIN_SECONDS,
        )

    def read(self, backup: bytes, file: str, offset: int, count: int) -> "Future[bytes]":
        return self._connection.ask(
            lambda link: link.service.readBackup(backup, file, offset, count),
            lambda response: bytes(response.data),
        )

    def end(self, backup: bytes) -> "Future[bool]":
        # Not safe to repeat: the second time the answer would be False.
        return self._connection.ask(
            lambda link: link.service.endBackup(backup),
            lambda response: bool(response.ended),
            is_repeatable=False,
        )
