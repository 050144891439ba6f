"""Backups while everything goes on, and while things go wrong: none is ever half."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import queueber
from queueber.backup.directory import DirectoryStorage
from queueber.backup.repository import Repository
from queueber.backup.restore import restore, verify
from queueber.backup.take import take_backup
from queueber.cli.commands.store import check_folder
from queueber.errors import QueueberError
from queueber.testing import ServerProcess, running_server
from tests.support.disks import grow, small_disk

QUEUE, TOPIC = "work", "log"


def sound(folder: Path) -> None:
    found = check_folder(folder)
    assert found.damage == [], found.summary


class Load:
    """Producers, workers and a publisher; it knows what was acknowledged, and what was begun."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._is_over = threading.Event()
        self.added: list[bytes] = []
        """Contents whose add was answered."""
        self.completing: list[bytes] = []
        """Contents whose completion was sent."""
        self.completed: list[bytes] = []
        self.published: list[bytes] = []
        self.failures: list[BaseException] = []
        bodies = (self._produce, self._produce, self._work, self._publish)
        self._threads = [
            threading.Thread(target=self._run, args=(body, number))
            for number, body in enumerate(bodies)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, body: Callable[[queueber.Client, int], None], number: int) -> None:
        try:
            with queueber.connect(self._address) as client:
                while not self._is_over.is_set():
                    body(client, number)
        except BaseException as error:  # noqa: BLE001  the test tells it
            self.failures.append(error)

    def _produce(self, client: queueber.Client, number: int) -> None:
        count = len(self.added)
        contents = [
            b"%d-%d-%d-%s" % (number, count, n, os.urandom(50).hex().encode()) for n in range(20)
        ]
        client.queue(QUEUE).add(contents)
        self.added += contents

    def _work(self, client: queueber.Client, _number: int) -> None:
        lease = client.queue(QUEUE).poll(30, lease=60, wait=0.1)
        contents = [item.contents for item in lease.items]
        self.completing += contents
        if contents:
            lease.complete([b"done"] * len(contents))
        self.completed += contents

    def _publish(self, client: queueber.Client, _number: int) -> None:
        payloads = [b"%d" % (len(self.published) + n) for n in range(10)]
        client.topic(TOPIC).publish(payloads)
        self.published += payloads

    def stop(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(60)
        assert self.failures == []


def contents_of(queue: queueber.Queue) -> set[bytes]:
    with queue.open_snapshot() as snapshot:
        return {
            item.contents
            for state in ("ready", "delayed", "leased", "dead")
            for item in snapshot.scan_all(state)
        }


def messages_of(topic: queueber.Topic) -> list[bytes]:
    """Of its only partition."""
    return [message.payload for page in topic.pages(start=0) for message in page]


@pytest.mark.recovery
@pytest.mark.slow
def test_backup_under_load_holds_all_that_was_acknowledged_before_it_began(tmp_path: Path) -> None:
    repository = Repository(DirectoryStorage(tmp_path / "repository"))
    with running_server() as server:
        load = Load(server.address)
        backups = []
        with queueber.connect(server.address) as client:
            for _ in range(3):
                time.sleep(1)
                added, completed = list(load.added), list(load.completed)
                published = list(load.published)
                taken = take_backup(client, repository, server.address)
                backups.append((taken, added, completed, published, set(load.completing)))
        load.stop()

    for taken, added, completed, published, completing in backups:
        folder = tmp_path / taken.name
        restore(repository, taken, folder, check=sound)
        with running_server(data_dir=folder) as again, queueber.connect(again.address) as client:
            found = contents_of(client.queue(QUEUE))
            messages = messages_of(client.topic(TOPIC))
            stats = client.queue(QUEUE).stats()
        assert len(added) > 100
        assert len(completed) > 20
        assert set(added) - completing - found == set(), "acknowledged, but not in the backup"
        assert set(completed) & found == set(), "completed, but back in the backup"
        assert messages[: len(published)] == published
        assert stats.ready + stats.leased == len(found)
    assert backups[2][0].sent_bytes < backups[2][0].bytes


# --- kills ----------------------------------------------------------------------------------------


def fill(server: ServerProcess, megabytes: int) -> None:
    random = Random(1)
    with queueber.connect(server.address) as client:
        for _ in range(megabytes):
            client.queue(QUEUE).add([random.randbytes(100_000) for _ in range(10)])


def wait_until(is_true: Callable[[], bool], what: str) -> None:
    give_up_at = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < give_up_at, what
        time.sleep(0.002)


def begin_backup(server: ServerProcess, folder: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "queueber", "backup", str(folder), "--address", server.address]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: any(folder.glob("files/*")), "the backup does not begin to copy")
    return process


@pytest.mark.recovery
@pytest.mark.slow
def test_killed_client_leaves_no_backup_and_the_next_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    repository = Repository(DirectoryStorage(folder))
    with running_server(data_dir=tmp_path / "data") as server:
        fill(server, 40)
        process = begin_backup(server, folder)
        process.send_signal(signal.SIGKILL)
        process.communicate()

        assert repository.names() == []
        with queueber.connect(server.address) as client:
            taken = take_backup(client, repository, server.address)
        assert verify(repository, taken) == []
        assert repository.names() == [taken.name]
        left = list((tmp_path / "data" / "checkpoints").iterdir())
        assert len(left) == 1, "that of the killed client, until nobody has read it for 5 minutes"

        server.kill()
        server.start()
        wait_until(lambda: not any(left[0].parent.iterdir()), "the start does not remove it")
    restore(repository, taken, tmp_path / "restored", check=sound)


@pytest.mark.recovery
@pytest.mark.slow
def test_killed_server_leaves_no_backup_and_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    repository = Repository(DirectoryStorage(folder))
    with running_server(data_dir=tmp_path / "data") as server:
        fill(server, 40)
        process = begin_backup(server, folder)
        server.kill()
        process.send_signal(signal.SIGSTOP)  # it must not reach the new server in time
        server.start()
        process.send_signal(signal.SIGCONT)
        _, told = process.communicate(timeout=120)

        if process.returncode:  # else all was read before the kill
            assert (process.returncode, repository.names()) == (4, [])
            assert b"the backup has ended" in told
        wait_until(
            lambda: not any((tmp_path / "data" / "checkpoints").iterdir()),
            "the start does not remove what was left",
        )
        with queueber.connect(server.address) as client:
            assert client.queue(QUEUE).stats().ready == 400
            taken = take_backup(client, repository, server.address)
    restore(repository, taken, tmp_path / "restored", check=sound)


@pytest.mark.recovery
@pytest.mark.slow
def test_full_disk_of_the_repository_is_told_and_leaves_no_backup(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    with running_server() as server, small_disk(folder, "8m"):
        fill(server, 20)
        repository = Repository(DirectoryStorage(folder / "repository"))
        command = [
            sys.executable, "-m", "queueber", "backup", str(folder / "repository"),
            "--address", server.address,
        ]  # fmt: skip

        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

        assert (ended.returncode, ended.stdout) == (2, "")
        assert "No space left on device" in ended.stderr
        assert "Traceback" not in ended.stderr
        assert repository.names() == []
        grow(folder)
        with queueber.connect(server.address) as client:
            taken = take_backup(client, repository, server.address)
        assert verify(repository, taken) == []
        assert repository.names() == [taken.name]


@pytest.mark.recovery
def test_backup_of_a_server_that_is_gone_is_refused(tmp_path: Path) -> None:
    repository = Repository(DirectoryStorage(tmp_path / "repository"))
    with running_server() as server, queueber.connect(server.address, retry_timeout=0) as client:
        server.stop()
        with pytest.raises(QueueberError):
            take_backup(client, repository, server.address)
    assert repository.names() == []
