"""Where a repository is kept: the contract of a storage, and which one an address means."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from queueber.errors import InvalidArgument


class Storage(Protocol):
    """Files by path. A path has parts that are separated by `/`."""

    address: str
    """As people write it."""

    def lock(self) -> AbstractContextManager[None]:
        """Nobody else changes the repository meanwhile; `Aborted` if somebody does."""

    def write(self, path: str, chunks: Iterable[bytes]) -> str:
        """Write a file, and check that it is there as it was given; returns its SHA-256.

        Whoever reads sees all of it or nothing. An error, also one of `chunks`, leaves nothing.
        """

    def read(self, path: str) -> Iterator[bytes]:
        """The chunks of a file; `NotFound` if there is none."""

    def sizes(self, folder: str) -> dict[str, int]:
        """The paths below a folder with their sizes, without files that were never finished."""

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""


def open_storage(address: str, *, must_exist: bool) -> Storage:
    """A directory, or a bucket with an address such as `s3://bucket/prefix`."""
    from queueber.backup.directory import DirectoryStorage

    if not address:
        raise InvalidArgument("repository: it is empty; give a directory, or an s3:// address")
    if "://" not in address:
        return DirectoryStorage(Path(address), must_exist=must_exist)
    if address.startswith("file://"):
        return DirectoryStorage(Path(unquote(urlsplit(address).path)), must_exist=must_exist)
    from queueber.backup.bucket import open_bucket

    return open_bucket(address)
