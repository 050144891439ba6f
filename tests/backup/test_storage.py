"""Storages of a repository: the contract, kept by directories, by memory and by S3."""

import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from queueber.backup.bucket import BucketStorage, open_bucket
from queueber.backup.directory import DirectoryStorage
from queueber.backup.storage import Storage, open_storage
from queueber.errors import Aborted, InvalidArgument, NotFound, QueueberError, Unavailable
from tests.support.s3_server import Bucket, s3_environment, s3_server


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with s3_server() as running:
        for name, value in s3_environment(running).items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture(params=["directory", "memory", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "directory":
        return DirectoryStorage(tmp_path / "repository")
    if request.param == "memory":
        from obstore.store import MemoryStore

        return BucketStorage(MemoryStore(), "memory:///")
    request.getfixturevalue("bucket")
    return open_bucket("s3://b/backups of/queueber")


def read(storage: Storage, path: str) -> bytes:
    return b"".join(storage.read(path))


def test_file_is_read_as_it_was_written(storage: Storage) -> None:
    chunks = [bytes([n]) * 700_000 for n in range(30)]
    data = b"".join(chunks)

    checksum = storage.write("files/a.sst", iter(chunks))
    storage.write("files/empty", [])

    assert checksum == sha256(data).hexdigest()
    assert read(storage, "files/a.sst") == data
    assert read(storage, "files/empty") == b""
    assert storage.sizes("files") == {"files/a.sst": len(data), "files/empty": 0}
    storage.write("files/a.sst", [b"another"])
    assert read(storage, "files/a.sst") == b"another"


def test_files_are_listed_by_folder_and_deleted_one_by_one(storage: Storage) -> None:
    assert storage.sizes("backups") == {}
    for path in ("files/a", "backups/one/a", "backups/one/b", "backups/two/a"):
        storage.write(path, [path.encode()])

    assert set(storage.sizes("backups")) == {"backups/one/a", "backups/one/b", "backups/two/a"}
    assert set(storage.sizes("backups/one")) == {"backups/one/a", "backups/one/b"}
    storage.delete("backups/one/a")
    storage.delete("backups/one/a")

    assert set(storage.sizes("backups")) == {"backups/one/b", "backups/two/a"}
    with pytest.raises(NotFound, match="backups/one/a"):
        read(storage, "backups/one/a")


def test_write_that_fails_leaves_nothing(storage: Storage) -> None:
    def broken() -> Iterator[bytes]:
        yield bytes(100_000)
        raise QueueberError("the connection was lost")

    with pytest.raises(QueueberError, match="the connection was lost"):
        storage.write("files/a", broken())

    assert storage.sizes("files") == {}
    with pytest.raises(NotFound):
        read(storage, "files/a")


def test_lock_keeps_others_out_and_ends(storage: Storage, tmp_path: Path) -> None:
    if isinstance(storage, DirectoryStorage):
        # A process does not lock itself out, so another one asks.
        ask = (
            "from pathlib import Path; from queueber.backup.directory import DirectoryStorage\n"
            f"with DirectoryStorage(Path({str(tmp_path / 'repository')!r})).lock(): print('mine')"
        )
        with storage.lock():
            told = subprocess.run(
                [sys.executable, "-c", ask], capture_output=True, text=True, check=False
            )
            assert "another process writes into the repository" in told.stderr
        told = subprocess.run(
            [sys.executable, "-c", ask], capture_output=True, text=True, check=True
        )
        assert told.stdout == "mine\n"
        return
    assert isinstance(storage, BucketStorage)
    other = BucketStorage(storage._store, storage.address)
    with storage.lock():
        with pytest.raises(Aborted, match="another process writes into the repository"):
            other.lock().__enter__()
        storage.write("files/a", [b"a"])
    with other.lock():
        pass
    assert "lock" not in storage.sizes("")


# --- directories ----------------------------------------------------------------------------------


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    storage = DirectoryStorage(tmp_path)
    storage.write("files/a", [b"a"])
    (tmp_path / "files" / "b.unfinished").write_bytes(b"half")
    assert storage.sizes("files") == {"files/a": 1}

    with storage.lock():
        assert sorted(path.name for path in (tmp_path / "files").iterdir()) == ["a"]


def test_directory_must_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(InvalidArgument, match="file is not a directory"):
        open_storage(str(tmp_path / "file"), must_exist=False)
    with pytest.raises(InvalidArgument, match="there is no directory"):
        open_storage(str(tmp_path / "none"), must_exist=True)
    with pytest.raises(InvalidArgument, match="repository: it is empty"):
        open_storage("", must_exist=False)


def test_file_address_is_a_directory(tmp_path: Path) -> None:
    storage = open_storage(f"file://{tmp_path}/with%20space", must_exist=False)
    storage.write("files/a", [b"a"])

    assert (tmp_path / "with space" / "files" / "a").read_bytes() == b"a"


# --- buckets --------------------------------------------------------------------------------------


def test_large_file_is_sent_in_parts(bucket: Bucket) -> None:
    storage = open_bucket("s3://b/x")

    storage.write("files/large", (bytes(1 << 20) for _ in range(20)))

    assert bucket.puts >= 3
    assert {key: len(data) for key, data in bucket.objects.items()} == {"x/files/large": 20 << 20}


def test_lock_of_a_process_that_died_ends_after_a_while(bucket: Bucket) -> None:
    storage = open_bucket("s3://b/x")
    storage.write("lock", [b"{}"])
    with pytest.raises(Aborted, match="or in 15 minutes"):
        storage.lock().__enter__()

    bucket.changed_at["x/lock"] -= 15 * 60

    with storage.lock():
        assert bucket.objects["x/lock"] != b"{}"
    assert bucket.objects == {}


def test_refusal_of_the_object_store_is_told_in_a_sentence(bucket: Bucket) -> None:
    storage = open_bucket("s3://b/x")
    bucket.refuses = True

    with pytest.raises(Unavailable, match="s3://b/x/files/a: ") as raised:
        storage.write("files/a", [b"a"])

    assert "\n" not in raised.value.sentence


def test_address_of_no_object_store_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r'repository: .*Unable to recognise URL "foo://x"'):
        open_storage("foo://x", must_exist=False)


def test_bucket_without_the_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)

    with pytest.raises(InvalidArgument, match=r"pip install 'queueber\[backup\]'"):
        open_storage("s3://b/x", must_exist=False)
