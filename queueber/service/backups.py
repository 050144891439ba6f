"""Backups: the whole store at one moment, as files that a caller reads and keeps elsewhere.

A backup ends when its caller says so, when nobody has read it for a while, and with the server. The
next start removes what a crash has left of one.
"""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from functools import partial

import structlog

from queueber.db.records.keys import NEVER_MS
from queueber.db.store.checkpoints import Checkpoints
from queueber.db.store.format import FORMAT
from queueber.errors import InvalidArgument, NotFound, OutOfRange, ResourceExhausted
from queueber.limits import BACKUP_CHUNK_BYTES, BACKUP_KEEP_MS, BACKUPS_MAX, SECOND_MS
from queueber.model import BackupFile, BackupInfo
from queueber.service.commit_hold import CommitHold
from queueber.service.loop import Future
from queueber.service.session import Session
from queueber.service.shell import Shell, wake

_log = structlog.get_logger("queueber.service")


@dataclass(slots=True)
class _Kept:
    used_at_ms: int
    files: dict[str, BackupFile] = field(default_factory=dict)
    is_made: bool = False


class Backups:
    def __init__(self, shell: Shell, commits: CommitHold) -> None:
        self._shell = shell
        self._commits = commits
        self._checkpoints = Checkpoints(shell.engine.store.checkpoints_path)
        self._kept: dict[bytes, _Kept] = {}
        self._stale = self._checkpoints.names()
        """Checkpoints to be removed: at first those that a crash has left."""
        self.due_ms = NEVER_MS
        """When one may have to end because nobody reads it."""

    def begin_backup(self, session: Session) -> Awaitable[BackupInfo]:
        """Everything that was acknowledged before this call is in the backup."""
        if len(self._kept) >= BACKUPS_MAX:
            raise ResourceExhausted(
                f"{BACKUPS_MAX} backups are being read, the limit; end one, or try again when one "
                f"was not read for {BACKUP_KEEP_MS // SECOND_MS} s"
            )
        shell = self._shell
        now_ms = shell.clock.now_ms()
        (backup_id,) = shell.engine.ids.mint(1, now_ms)
        self._kept[backup_id] = _Kept(now_ms)
        # A task of its own: if the caller goes, the checkpoint is made nevertheless, and expires.
        task = shell.loop.create_task(self._make(backup_id, session))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return self._made(task)

    async def _made(self, task: Future) -> BackupInfo:
        ended = self._shell.loop.create_future()
        task.add_done_callback(lambda _: wake(ended))
        await ended
        backup: BackupInfo = task.result()
        return backup

    async def _make(self, backup_id: bytes, session: Session) -> BackupInfo:
        shell, kept = self._shell, self._kept[backup_id]
        shell.admission.enter()
        try:
            async with self._commits.hold():
                taken_at_ms = shell.clock.now_ms()
                queues = list(shell.engine.queues)
                items = sum(queue.counters.items for queue in queues)
                topics = shell.engine.topics.count
                files = await shell.in_background(partial(self._make_files, backup_id.hex()))
        except BaseException:
            self._end(backup_id, "failed")
            raise
        finally:
            shell.admission.leave()
        kept.files = {file.name: file for file in files}
        kept.used_at_ms, kept.is_made = shell.clock.now_ms(), True
        expires_at_ms = kept.used_at_ms + BACKUP_KEEP_MS
        self.due_ms = min(self.due_ms, expires_at_ms)
        shell.wake_sweeper_for(self.due_ms)
        size = sum(file.size for file in files)
        _log.info(
            "backup_begun", backup=backup_id.hex(), files=len(files), bytes=size, **session.who
        )
        return BackupInfo(
            backup_id, taken_at_ms, expires_at_ms, FORMAT, files, len(queues), items, topics
        )

    def _make_files(self, name: str) -> list[BackupFile]:
        """May run in a thread of its own."""
        self._shell.engine.store.checkpoint(self._checkpoints.directory(name))
        return self._checkpoints.files(name)

    def read_backup(
        self, backup_id: bytes, name: str, *, offset: int, count: int
    ) -> Awaitable[bytes]:
        """Bytes of a file from an offset on; empty at its end."""
        kept = self._kept.get(backup_id)
        if kept is None or not kept.is_made:
            raise NotFound(
                "backup: the backup has ended, or there was none; one that nobody reads ends after "
                f"{BACKUP_KEEP_MS // SECOND_MS} s, and all end with the server; begin another"
            )
        file = kept.files.get(name)
        if file is None:
            raise InvalidArgument(f"file: the backup has no file {name[:50]!r}")
        if offset > file.size:
            raise OutOfRange(f"offset: {name!r} has {file.size} bytes, and {offset} is behind them")
        if count > BACKUP_CHUNK_BYTES:
            raise InvalidArgument(
                f"bytes: {count} are too many; the limit of a call is {BACKUP_CHUNK_BYTES}"
            )
        count = min(count or BACKUP_CHUNK_BYTES, file.size - offset)
        return self._read(
            kept, partial(self._checkpoints.read, backup_id.hex(), name, offset, count)
        )

    async def _read(self, kept: _Kept, read: "partial[bytes]") -> bytes:
        kept.used_at_ms = self._shell.clock.now_ms()
        data = await self._shell.in_background(read)
        kept.used_at_ms = self._shell.clock.now_ms()
        return data

    def end_backup(self, backup_id: bytes) -> bool:
        """False when it has ended already."""
        kept = self._kept.get(backup_id)
        if kept is None or not kept.is_made:
            return False
        self._end(backup_id, "ended by its caller")
        return True

    def expire_backups(self, now_ms: int) -> int:
        """End those that nobody has read for a while; returns when to look again."""
        if now_ms >= self.due_ms:
            for backup_id, kept in list(self._kept.items()):
                if kept.is_made and now_ms >= kept.used_at_ms + BACKUP_KEEP_MS:
                    self._end(backup_id, "not read any more")
            used_at_ms = [kept.used_at_ms for kept in self._kept.values() if kept.is_made]
            self.due_ms = min(used_at_ms) + BACKUP_KEEP_MS if used_at_ms else NEVER_MS
        return self.due_ms

    def server_stops(self) -> None:
        for backup_id in list(self._kept):
            self._end(backup_id, "server stops")
        while (name := self.take_stale_checkpoint()) is not None:
            self.remove_checkpoint(name)

    def _end(self, backup_id: bytes, reason: str) -> None:
        if self._kept.pop(backup_id, None) is not None:
            self._stale.append(backup_id.hex())
            self._shell.wake_reclaimer()
            _log.info("backup_ended", backup=backup_id.hex(), reason=reason)

    # --- files of backups that have ended ---------------------------------------------------------

    def take_stale_checkpoint(self) -> str | None:
        """A checkpoint whose backup has ended, to be removed."""
        return self._stale.pop() if self._stale else None

    def remove_checkpoint(self, name: str) -> None:
        """May run in a thread of its own."""
        self._checkpoints.remove(name)
