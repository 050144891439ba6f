"""A backup: the whole store of the server at one moment, as files to be read and kept elsewhere."""

from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import Future
from typing import Self

from queueber.client.calls.backups import BackupCalls
from queueber.client.transport.futures import ignore_outcome, wait_for_async
from queueber.errors import InvalidArgument, QueueberError
from queueber.limits import BACKUP_CHUNK_BYTES
from queueber.model import BackupInfo

_CHUNKS_UNDER_WAY = 4


class AsyncBackup:
    """The store at one moment. The server keeps it until it is closed, or not read for 5 minutes.

    `queueber backup` keeps backups in a directory or a bucket; this is what it reads.
    """

    def __init__(self, calls: BackupCalls, info: BackupInfo) -> None:
        self._calls = calls
        self.info = info
        """Its files, and how many queues, items and topics the server had."""

    def __repr__(self) -> str:
        return f"<AsyncBackup {self.info.id.hex()} files={len(self.info.files)}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def read(self, file: str) -> AsyncIterator[bytes]:
        """The bytes of a file in chunks, of which four are asked for ahead."""
        sizes = {each.name: each.size for each in self.info.files}
        if file not in sizes:
            raise InvalidArgument(f"file: the backup has no file {file!r}")
        size, done = sizes[file], 0
        under_way: deque[Future[bytes]] = deque()
        try:
            for at in range(0, size, BACKUP_CHUNK_BYTES):
                if len(under_way) == _CHUNKS_UNDER_WAY:
                    chunk = await wait_for_async(under_way.popleft())
                    done += len(chunk)
                    yield chunk
                count = min(BACKUP_CHUNK_BYTES, size - at)
                under_way.append(self._calls.read(self.info.id, file, at, count))
            while under_way:
                chunk = await wait_for_async(under_way.popleft())
                done += len(chunk)
                yield chunk
        finally:
            # Whoever stops early, or fails, does not wait for the others.
            for future in under_way:
                ignore_outcome(future)
                future.cancel()
        if done != size:
            raise QueueberError(f"the server sent {done} bytes of {file!r}, not {size}")

    async def aclose(self) -> bool:
        """Let the server drop the backup; False when it had ended already."""
        return await wait_for_async(self._calls.end(self.info.id))
