"""A repository in a bucket of an object store: S3, and what else `obstore` knows."""

import contextlib
import json
import os
import socket
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from queueber.errors import Aborted, InvalidArgument, NotFound, QueueberError, Unavailable
from queueber.limits import MIB

_LOCK = "lock"
_LOCK_ENDS = timedelta(minutes=15)
"""A lock that was not renewed for so long was left by a process that has died."""
_LOCK_RENEWED = timedelta(minutes=1)
_CHUNK_BYTES = 8 * MIB


def open_bucket(address: str) -> "BucketStorage":
    """Keys and region come from the variables that the object store's own tools read."""
    try:
        from obstore.store import from_url
    except ModuleNotFoundError as error:
        raise InvalidArgument(
            f"repository: {address} needs the package obstore: pip install 'queueber[backup]'"
        ) from error
    try:
        return BucketStorage(from_url(address), address)
    except Exception as error:
        raise InvalidArgument(f"repository: {_first_line(error)}") from error


class BucketStorage:
    def __init__(self, store: Any, address: str) -> None:
        import obstore

        self._api = obstore
        self._store = store
        self.address = address
        self._renewed_at: datetime | None = None

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        with self._errors(_LOCK):
            self._take_lock()
        try:
            yield
        finally:
            self._renewed_at = None
            # If it cannot be deleted, it ends by itself.
            with contextlib.suppress(QueueberError):
                self.delete(_LOCK)

    def _take_lock(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            held_since = self._api.head(self._store, _LOCK)["last_modified"]
            if datetime.now(UTC) - held_since < _LOCK_ENDS:
                raise Aborted(
                    f"another process writes into the repository {self.address}, or has died while "
                    "it did; try again when it has ended, or in 15 minutes"
                )
            self.delete(_LOCK)
        try:
            self._api.put(self._store, _LOCK, self._holder(), mode="create")
        except self._api.exceptions.AlreadyExistsError as error:
            raise Aborted(f"another process writes into the repository {self.address}") from error
        self._renewed_at = datetime.now(UTC)

    def _holder(self) -> bytes:
        return json.dumps({"host": socket.gethostname(), "process": os.getpid()}).encode()

    def _renew_lock(self) -> None:
        now = datetime.now(UTC)
        if self._renewed_at is not None and now - self._renewed_at >= _LOCK_RENEWED:
            self._api.put(self._store, _LOCK, self._holder())
            self._renewed_at = now

    def write(self, path: str, chunks: Iterable[bytes]) -> str:
        digest, size = sha256(), 0

        def passed_on() -> Iterator[bytes]:
            nonlocal size
            for chunk in chunks:
                digest.update(chunk)
                size += len(chunk)
                self._renew_lock()
                yield chunk

        with self._errors(path):
            # In parts as they come: a file need not fit into the memory.
            self._api.put(self._store, path, passed_on(), chunk_size=_CHUNK_BYTES)
            stored = int(self._api.head(self._store, path)["size"])
        if stored != size:
            raise QueueberError(f"{self._full(path)} has {stored} bytes, but {size} were sent")
        return digest.hexdigest()

    def read(self, path: str) -> Iterator[bytes]:
        with self._errors(path):
            for chunk in self._api.get(self._store, path).stream(min_chunk_size=MIB):
                yield bytes(chunk)

    def sizes(self, folder: str) -> dict[str, int]:
        with self._errors(folder):
            pages = self._api.list(self._store, folder)
            return {each["path"]: int(each["size"]) for page in pages for each in page}

    def delete(self, path: str) -> None:
        with self._errors(path), contextlib.suppress(FileNotFoundError):
            self._api.delete(self._store, path)

    @contextlib.contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise NotFound(f"there is no file {self._full(path)}") from error
        except self._api.exceptions.BaseError as error:
            raise Unavailable(f"{self._full(path)}: {_first_line(error)}") from error

    def _full(self, path: str) -> str:
        return f"{self.address.rstrip('/')}/{path}"


def _first_line(error: Exception) -> str:
    """What an error says, without what is for the developers of the library."""
    return str(error).partition("\n")[0].strip()
