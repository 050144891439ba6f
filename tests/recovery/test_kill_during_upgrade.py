"""An upgrade that is killed with SIGKILL, again and again: in the end nothing is missing."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from queueber.db.recovery.opening import stored_format
from queueber.db.store.rocks import RocksStore
from queueber.db.upgrade.stores import OldStore
from queueber.db.upgrade.swap import UpgradeInterrupted, is_interrupted
from queueber.engine.integrity.check_store import check_store
from queueber.errors import StorageCorrupt
from tests.support.folders import quick_folder, remove_folder
from tests.support.format_4 import Queue, random_queue, write_store
from tests.support.upgraded import ReadQueue

pytestmark = pytest.mark.recovery

KILLS = int(os.environ.get("QUEUEBER_TEST_KILLS", "10"))

PROGRAM = """
import os, sys, time
from pathlib import Path
from queueber.db.upgrade import swap
from queueber.db.upgrade.stores import Work
from queueber.db.upgrade.upgrading import upgrade
from queueber.engine.integrity.check_store import check_store

def move(old, new):
    old.rename(new)
    time.sleep(0.005)

swap._move = move
for line in sys.stdin:
    seconds, data = line.split(maxsplit=1)
    child = os.fork()
    if child == 0:
        work = Work(1_700_000_000_000)
        upgrade(Path(data.strip()), work, lambda store: [*map(str, check_store(store))])
        os._exit(0)
    if float(seconds) >= 0:
        time.sleep(float(seconds))
        os.kill(child, 9)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Upgrades each directory that it is told in a process of its own, which need not import again, and
kills that after some seconds, unless they are negative. Prints how it ended. It pauses after each
rename: kills would hardly ever meet the swap."""


class Upgrades:
    def __init__(self) -> None:
        self._program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _upgrade(self, data: Path, seconds: float) -> int:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(f"{seconds} {data}\n")
        self._program.stdin.flush()
        return int(self._program.stdout.readline())

    def run(self, data: Path) -> float:
        """Upgrade to the end; how long it took."""
        begun = time.monotonic()
        assert self._upgrade(data, -1) == 0
        return time.monotonic() - begun

    def kill(self, data: Path, seconds: float) -> bool:
        """Whether the kill came before the end."""
        return self._upgrade(data, seconds) == -signal.SIGKILL

    def close(self) -> None:
        self._program.communicate()


@pytest.fixture
def upgrades() -> Iterator[Upgrades]:
    started = Upgrades()
    yield started
    started.close()


def check_whole(data: Path, queues: list[Queue]) -> str:
    """What a kill has left is the old store, the new one, or something that everybody refuses."""
    if is_interrupted(data):
        with pytest.raises(UpgradeInterrupted, match="run 'queueber upgrade' again"):
            RocksStore(data)
        return "between"
    if stored_format(data) == (4).to_bytes(4):
        with pytest.raises(StorageCorrupt, match="run 'queueber upgrade'"):
            RocksStore(data)
        with OldStore(data, 4) as old:
            ids = [key for key, _ in old.walk("items")]
        assert ids == [queue.prefix + item.item_id for queue in queues for item in queue.items]
        return "old"
    check_upgraded(data, queues)
    return "new"


def check_upgraded(data: Path, queues: list[Queue]) -> None:
    with RocksStore(data) as store:
        assert check_store(store) == []
        for queue in queues:
            found = ReadQueue(store, queue).items
            contents = [(item.item_id, item.state, item.contents) for item in queue.items]
            assert [(item.item_id, item.state, item.contents) for item in found] == contents


@pytest.fixture
def folder() -> Iterator[Path]:
    made = quick_folder()
    yield made
    remove_folder(made)


def test_upgrade_killed_at_random_moments_is_finished_by_the_next(
    folder: Path, upgrades: Upgrades
) -> None:
    random = Random(20)
    queues = [random_queue(random, number, groups=4) for number in (1, 2)]
    original, data = folder / "original", folder / "data"
    write_store(original, queues)
    shutil.copytree(original, data)
    seconds = upgrades.run(data)
    check_upgraded(data, queues)
    shutil.rmtree(data)

    kills, left = 0, Counter[str]()
    while kills < KILLS or not left["old"] or not left["between"]:
        if not data.exists():
            shutil.copytree(original, data)
        kills += upgrades.kill(data, seconds * random.uniform(0, 1))
        state = check_whole(data, queues)
        left[state] += 1
        if state != "old" or random.random() < 0.3:
            took = upgrades.run(data)
            # How busy the machine is changes: the next kill must come in time.
            seconds = took if state == "old" else seconds * 0.9
            check_upgraded(data, queues)
            with OldStore(data / "format-4", 4) as old:
                assert len(list(old.walk("items"))) == sum(len(queue.items) for queue in queues)
            shutil.rmtree(data)
