"""The repository: which backups there are, and which files belong to them."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from queueber.backup.manifest import (
    MANIFEST_FILE,
    NAME,
    Manifest,
    decode,
    encode,
    name_of,
    sort_key,
)
from queueber.backup.storage import Storage
from queueber.errors import InvalidArgument, StorageCorrupt

_BACKUPS, _FILES = "backups", "files"


class Repository:
    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    @property
    def address(self) -> str:
        return self.storage.address

    def lock(self) -> AbstractContextManager[None]:
        return self.storage.lock()

    def names(self) -> list[str]:
        """The backups that are complete, oldest first."""
        return sorted(self._found()[0], key=sort_key)

    def read(self, name: str) -> Manifest:
        """`InvalidArgument` if there is no such backup."""
        names = self.names()
        if name not in names:
            listed = f"it has {', '.join(names[-3:])}" if names else "it has none"
            raise InvalidArgument(f"{self.address} has no backup {name!r}; {listed}")
        return self._manifest(name)

    def chosen(self, name: str) -> Manifest:
        """The backup of a name, or the newest."""
        if name:
            return self.read(name)
        names = self.names()
        if not names:
            raise InvalidArgument(f"{self.address} has no backup")
        return self._manifest(names[-1])

    def all(self) -> list[Manifest]:
        return [self._manifest(name) for name in self.names()]

    def new_name(self, taken_at_ms: int) -> str:
        name = name_of(taken_at_ms)
        complete, unfinished = self._found()
        numbered = (f"{name}-{number}" for number in range(2, 10_000))
        return next(
            each for each in (name, *numbered) if each not in complete and each not in unfinished
        )

    def add(self, manifest: Manifest) -> None:
        """From now on it is a backup. All its files are there."""
        self.storage.write(_manifest_path(manifest.name), [encode(manifest)])

    # --- shared files -----------------------------------------------------------------------------

    def shared(self) -> dict[str, int]:
        """The paths of files that backups share, with their sizes."""
        return self.storage.sizes(_FILES)

    @staticmethod
    def shared_path(fingerprint: bytes) -> str:
        return f"{_FILES}/{fingerprint.hex()}.sst"

    @staticmethod
    def own_path(name: str, file: str) -> str:
        return f"{_BACKUPS}/{name}/{file}"

    # --- deleting; the caller has the lock --------------------------------------------------------

    def delete_unfinished(self) -> None:
        """Delete what backups that were interrupted have left, but for files to be shared: the
        next backup need not send them again."""
        _, unfinished = self._found()
        for name in unfinished:
            self._delete_own(name)

    def prune(self, keep: int) -> list[str]:
        """Keep that many of the newest backups; returns the names of those that were deleted.

        Files that no other backup has are deleted, too.
        """
        # All are read before anything is deleted: if one is damaged, nobody knows what it needs.
        manifests = self.all()
        old, kept = manifests[: max(0, len(manifests) - keep)], manifests[-keep:]
        for manifest in old:
            self.storage.delete(_manifest_path(manifest.name))
            self._delete_own(manifest.name)
        if old:
            needed = {file.stored for manifest in kept for file in manifest.files}
            self._delete_all(path for path in self.shared() if path not in needed)
        return [manifest.name for manifest in old]

    def _delete_own(self, name: str) -> None:
        self._delete_all(self.storage.sizes(f"{_BACKUPS}/{name}"))

    def _delete_all(self, paths: Iterable[str]) -> None:
        for path in list(paths):
            self.storage.delete(path)

    def _manifest(self, name: str) -> Manifest:
        path = _manifest_path(name)
        where = f"{path} of {self.address}"
        manifest = decode(b"".join(self.storage.read(path)), where)
        if manifest.name != name:  # what is deleted is named by it
            raise StorageCorrupt(
                f"{where} is that of the backup {manifest.name!r}; it was copied, or changed by "
                "somebody: move it away"
            )
        return manifest

    def _found(self) -> tuple[Sequence[str], Sequence[str]]:
        """The names of backups that are complete, and of those that are not."""
        by_name: dict[str, set[str]] = {}
        for path in self.storage.sizes(_BACKUPS):
            _, name, *rest = path.split("/")
            if NAME.fullmatch(name):
                by_name.setdefault(name, set()).add("/".join(rest))
        complete = [name for name, files in by_name.items() if MANIFEST_FILE in files]
        return complete, [name for name in by_name if name not in complete]


def _manifest_path(name: str) -> str:
    return Repository.own_path(name, MANIFEST_FILE)
