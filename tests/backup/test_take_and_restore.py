"""Backups of a real server: whole, incremental, independent of each other, restored as taken."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from queueber import Client, connect
from queueber.backup.directory import DirectoryStorage
from queueber.backup.manifest import Manifest
from queueber.backup.repository import Repository
from queueber.backup.restore import UNFINISHED, restore, verify
from queueber.backup.storage import Storage
from queueber.backup.take import take_backup
from queueber.cli.commands.store import check_folder
from queueber.errors import InvalidArgument, QueueberError, StorageCorrupt
from queueber.testing import ServerProcess, running_server

ITEM = bytes(range(256)) * 4


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server() as running:
        yield running


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with connect(server.address) as connected:
        yield connected


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(DirectoryStorage(tmp_path / "repository"))


def take(client: Client, repository: Repository) -> Manifest:
    return take_backup(client, repository, "here")


def sound(folder: Path) -> None:
    found = check_folder(folder)
    assert found.damage == [], found.summary


def items_in(folder: Path, queue: str) -> int:
    with running_server(data_dir=folder) as restored, connect(restored.address) as client:
        stats = client.queue(queue, must_exist=True).stats()
        return stats.ready + stats.delayed + stats.leased + stats.dead


def test_backup_says_what_it_contains_and_restores_to_that(
    client: Client, repository: Repository, tmp_path: Path
) -> None:
    client.queue("whole").add([ITEM] * 100)
    client.topic("topic").publish([b"a", b"b"])
    shown: list[tuple[int, int]] = []

    taken = take_backup(client, repository, "here", lambda done, total: shown.append((done, total)))

    info = client.server()
    assert repository.names() == [taken.name]
    assert repository.read(taken.name) == taken
    assert (taken.server, taken.server_version) == ("here", info.version)
    assert (taken.queues, taken.items, taken.topics) == (len(client.queues()), 100, 1)
    assert taken.sent_bytes == taken.bytes > 0
    assert shown[-1] == (taken.bytes, taken.bytes)
    assert verify(repository, taken) == []

    restore(repository, taken, tmp_path / "data", check=sound)
    assert items_in(tmp_path / "data", "whole") == 100
    assert not (tmp_path / "data" / UNFINISHED).exists()


def test_later_backup_sends_only_what_is_new(client: Client, repository: Repository) -> None:
    client.queue("more").add([ITEM * 100] * 100)
    first = take(client, repository)
    client.queue("more").add([ITEM])

    second = take(client, repository)

    shared = {file.stored for file in first.files} & {file.stored for file in second.files}
    assert all(path.startswith("files/") for path in shared)
    assert sum(file.bytes for file in second.files if file.stored in shared) > 0
    own = sum(file.bytes for file in second.files if file.stored not in shared)
    assert second.sent_bytes == own < second.bytes
    assert second.name != first.name
    assert repository.names() == [first.name, second.name]
    assert verify(repository, second) == []


def test_deleted_backup_does_no_harm_to_others(
    client: Client, repository: Repository, tmp_path: Path
) -> None:
    queue = client.queue("kept")
    taken = []
    for _ in range(4):
        queue.add([ITEM])
        taken.append(take(client, repository))
    before = repository.shared()

    with repository.lock():
        assert repository.prune(2) == [each.name for each in taken[:2]]
        assert repository.prune(2) == []

    assert repository.names() == [each.name for each in taken[2:]]
    needed = {file.stored for each in taken[2:] for file in each.files}
    assert set(repository.shared()) == {path for path in before if path in needed}
    for each, items in zip(taken[2:], (3, 4), strict=True):
        assert verify(repository, each) == []
        restore(repository, each, tmp_path / each.name, check=sound)
        assert items_in(tmp_path / each.name, "kept") == items


def test_damaged_manifest_stops_a_prune_before_it_deletes_anything(
    client: Client, repository: Repository, tmp_path: Path
) -> None:
    taken = [take(client, repository) for _ in range(3)]
    manifest = tmp_path / "repository" / "backups" / taken[1].name / "backup.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"queues"', b'"quenes"'))
    before = repository.storage.sizes("")

    with pytest.raises(StorageCorrupt, match="is damaged"), repository.lock():
        repository.prune(1)

    assert repository.storage.sizes("") == before


# --- interruptions --------------------------------------------------------------------------------


class _Breaking:
    """A storage that fails after so many files."""

    def __init__(self, storage: Storage, writes: int) -> None:
        self._storage = storage
        self._writes = writes
        self.address = storage.address
        self.lock, self.read = storage.lock, storage.read
        self.sizes, self.delete = storage.sizes, storage.delete

    def write(self, path: str, chunks: "Iterator[bytes]") -> str:
        if not self._writes:
            raise QueueberError("the disk is gone")
        self._writes -= 1
        return self._storage.write(path, chunks)


def test_interrupted_backup_is_none_and_the_next_goes_on_with_what_was_sent(
    client: Client, repository: Repository
) -> None:
    client.queue("interrupted").add([ITEM * 100] * 100)
    whole = take(client, repository)
    with repository.lock():
        for file in whole.files:
            repository.storage.delete(file.stored)
        repository.storage.delete(f"backups/{whole.name}/backup.json")
    final = [file for file in whole.files if file.stored.startswith("files/")]
    breaking = Repository(_Breaking(repository.storage, len(final)))  # type: ignore[arg-type]

    with pytest.raises(QueueberError, match="the disk is gone"):
        take(client, breaking)

    assert repository.names() == []
    assert len(repository.shared()) > 0
    sent = sum(repository.shared().values())
    taken = take(client, repository)
    assert repository.names() == [taken.name]
    assert taken.sent_bytes <= taken.bytes - sent
    assert verify(repository, taken) == []


def test_interrupted_backup_leaves_no_files_of_its_own_to_the_next(
    client: Client, repository: Repository
) -> None:
    repository.storage.write("backups/2020-01-01T00-00-00Z/CURRENT", [b"left"])
    assert repository.names() == []

    taken = take(client, repository)

    assert repository.names() == [taken.name]
    assert {path.split("/")[1] for path in repository.storage.sizes("backups")} == {taken.name}


# --- damage ---------------------------------------------------------------------------------------


def test_flipped_byte_is_found_by_verify_and_refused_by_restore(
    client: Client, repository: Repository, tmp_path: Path
) -> None:
    client.queue("damaged").add([ITEM] * 100)
    taken = take(client, repository)
    largest = max(taken.files, key=lambda file: file.bytes)
    path = tmp_path / "repository" / largest.stored
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)

    (damage,) = verify(repository, taken)
    assert damage.startswith(f"{largest.name}: {largest.stored} of ")
    with pytest.raises(StorageCorrupt, match="is damaged: its checksum is another one"):
        restore(repository, taken, tmp_path / "data", check=sound)
    assert list((tmp_path / "data").iterdir()) == []


def test_missing_and_cut_files_are_found(
    client: Client, repository: Repository, tmp_path: Path
) -> None:
    taken = take(client, repository)
    missing, cut = taken.files[0], taken.files[-1]
    (tmp_path / "repository" / missing.stored).unlink()
    (tmp_path / "repository" / cut.stored).write_bytes(b"cut")

    found = verify(repository, taken)

    assert len(found) == 2
    assert "there is no file" in found[0]
    assert f"it has 3 bytes, not {cut.bytes}" in found[1]


def test_store_that_is_wrong_is_not_restored(
    client: Client, repository: Repository, tmp_path: Path
) -> None:
    taken = take(client, repository)

    def find_fault(folder: Path) -> None:
        assert (folder / "CURRENT").is_file()
        raise StorageCorrupt("I1")

    with pytest.raises(StorageCorrupt, match="I1"):
        restore(repository, taken, tmp_path / "data", check=find_fault)

    assert list((tmp_path / "data").iterdir()) == []
    restore(repository, taken, tmp_path / "data", check=sound)


def test_restore_refuses_a_directory_that_is_not_empty_and_changes_nothing(
    client: Client, repository: Repository, tmp_path: Path
) -> None:
    taken = take(client, repository)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_text("mine")

    with pytest.raises(InvalidArgument, match="is not empty: it has 'file'"):
        restore(repository, taken, tmp_path / "data", check=sound)

    assert [entry.name for entry in (tmp_path / "data").iterdir()] == ["file"]
    (tmp_path / "data" / "file").unlink()
    (tmp_path / "data" / UNFINISHED).mkdir()
    (tmp_path / "data" / UNFINISHED / "000001.sst").write_text("a killed restore left this")
    restore(repository, taken, tmp_path / "data", check=sound)
    assert (tmp_path / "data" / "CURRENT").is_file()


def test_backup_by_name_or_the_newest(client: Client, repository: Repository) -> None:
    with pytest.raises(InvalidArgument, match="has no backup"):
        repository.chosen("")
    first, second = take(client, repository), take(client, repository)

    assert repository.chosen("") == second
    assert repository.chosen(first.name) == first
    with pytest.raises(InvalidArgument, match=f"has no backup 'none'; it has {first.name}, "):
        repository.chosen("none")


def test_routes_go_on_in_a_restored_store_which_tells_nothing_again(
    client: Client, repository: Repository, tmp_path: Path
) -> None:
    topic, queue = client.topic("routed-events"), client.queue("routed")
    client.create_topic(topic.name)
    client.create_queue(queue.name)
    for on in ("insert", "update", "delete"):
        topic.add_source(queue.name, on=on, payload="full")
    queue.add([b"done", b"failed", b"left"])
    queue.poll().complete([b""])
    queue.poll().fail("no", delay=0)
    before = [(each.offset, each.id) for each in topic.messages()]

    restore(repository, take_backup(client, repository, "here"), tmp_path / "data", check=sound)
    queue.purge("ready")  # only here
    with (
        running_server(data_dir=tmp_path / "data") as restored,
        connect(restored.address) as again,
    ):
        topic, queue = again.topic(topic.name), again.queue(queue.name)
        assert [(each.offset, each.id) for each in topic.messages()] == before
        queue.add(b"after")
        for lease in (queue.poll(), queue.poll(), queue.poll()):
            lease.remove()
        events = list(topic.messages())
        assert len(topic.describe().sources) == 3
    told = [(event.attributes["queueber.change"], event.payload) for event in events]
    assert told == [
        ("added", b"done"), ("added", b"failed"), ("added", b"left"), ("completed", b"done"),
        ("failed", b"failed"), ("added", b"after"), ("removed", b"left"), ("removed", b"failed"),
        ("removed", b"after"),
    ]  # fmt: skip
    assert [event.offset for event in events] == list(range(9))
