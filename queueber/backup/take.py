"""Take a backup: copy the files of the server that the repository does not have."""

import contextlib
from collections.abc import Callable, Iterator
from hashlib import sha256

from queueber.backup.manifest import Manifest, StoredFile
from queueber.backup.repository import Repository
from queueber.client import Backup, Client
from queueber.errors import QueueberError
from queueber.model import BackupFile

Show = Callable[[int, int], None]
"""Shows how many bytes are done, of how many."""


def take_backup(
    client: Client, repository: Repository, address: str, show: Show = lambda _done, _total: None
) -> Manifest:
    """A new backup of the server; `address` says in its manifest where it is from."""
    with repository.lock():
        repository.delete_unfinished()
        server = client.server()
        backup = client.backup()
        try:
            copy = _Copy(backup, repository, show)
            files = [copy.stored(file) for file in backup.info.files]
            copy.check_shared(files)
        finally:
            # It ends by itself, too.
            with contextlib.suppress(QueueberError):
                backup.close()
        manifest = Manifest(
            copy.name,
            backup.info.taken_at_ms,
            address,
            server.version,
            backup.info.format,
            backup.info.queues,
            backup.info.items,
            backup.info.topics,
            copy.sent,
            files,
        )
        repository.add(manifest)
        return manifest


class _Copy:
    """Copies the files of one backup."""

    def __init__(self, backup: Backup, repository: Repository, show: Show) -> None:
        self._backup = backup
        self._repository = repository
        self._storage = repository.storage
        self._show = show
        self.name = repository.new_name(backup.info.taken_at_ms)
        self.sent = 0
        self._done = 0
        self._total = sum(file.size for file in backup.info.files)
        self._shared = repository.shared()
        names = repository.names()
        newest = repository.read(names[-1]).files if names else ()
        self._known = {file.stored: file for file in newest}

    def stored(self, file: BackupFile) -> StoredFile:
        if not file.is_final:
            path = self._repository.own_path(self.name, file.name)
            return StoredFile(file.name, file.size, self._send(file, path), path)
        path = self._repository.shared_path(file.fingerprint)
        if self._shared.get(path) != file.size:
            return StoredFile(file.name, file.size, self._send(file, path), path)
        known = self._known.get(path)
        # A backup that was interrupted has sent it, if no backup knows its checksum.
        checksum = self._read_checksum(path) if known is None else known.sha256
        self._advance(file.size)
        return StoredFile(file.name, file.size, checksum, path)

    def check_shared(self, files: list[StoredFile]) -> None:
        """Somebody may have deleted files by hand while the others were copied."""
        present = self._repository.shared()
        for file in files:
            if file.stored.startswith("files/") and present.get(file.stored) != file.bytes:
                raise QueueberError(
                    f"{file.stored} has vanished from {self._repository.address} meanwhile; take "
                    "the backup again"
                )

    def _send(self, file: BackupFile, path: str) -> str:
        return self._storage.write(path, self._chunks(file))

    def _chunks(self, file: BackupFile) -> Iterator[bytes]:
        for chunk in self._backup.read(file.name):
            yield chunk
            self.sent += len(chunk)
            self._advance(len(chunk))

    def _read_checksum(self, path: str) -> str:
        digest = sha256()
        for chunk in self._storage.read(path):
            digest.update(chunk)
        return digest.hexdigest()

    def _advance(self, size: int) -> None:
        self._done += size
        self._show(self._done, self._total)
