"""A disk that is full while many callers write and wait for syncs, and then has room again."""

import threading
import time
from pathlib import Path

import pytest

import queueber
from faults.checker import check
from faults.observed import ObservedQueue, observe_drain, read_final_state
from faults.recorder import Recorder
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.testing import running_server
from tests.support.disks import grow, small_disk

CALLERS = 4
ITEM = bytes(200_000)


class Caller(threading.Thread):
    """Adds, whatever it is told, until it has had success after the disk had room again."""

    def __init__(
        self,
        address: str,
        has_room: threading.Event,
        was_refused: threading.Event,
        recorder: Recorder,
    ) -> None:
        super().__init__()
        self._address = address
        self._has_room = has_room
        self._was_refused = was_refused
        self._recorder = recorder
        self.added: list[bytes] = []
        self.refusals: set[str] = set()
        self.unsure: list[str] = []

    def run(self) -> None:
        with queueber.connect(self._address, retry_timeout=0) as client:
            queue = ObservedQueue(client.queue(), self._recorder, self.name)
            while True:
                had_room = self._has_room.is_set()
                try:
                    self.added += queue.add([ITEM])
                except queueber.Unavailable as refusal:
                    self.refusals.add(str(refusal))
                    self._was_refused.set()
                    time.sleep(0.05)
                except queueber.QueueberError as error:
                    self.unsure.append(str(error))
                    return
                else:
                    if had_room:
                        return


@pytest.mark.recovery
@pytest.mark.timeout(180)
@pytest.mark.parametrize("durability", ["sync", "os"])
def test_many_callers_on_a_full_disk_lose_nothing_acknowledged_and_go_on_when_there_is_room(
    tmp_path: Path, durability: str
) -> None:
    with small_disk(tmp_path, "32m"):
        with running_server("--durability", durability, data_dir=tmp_path / "data") as server:
            has_room, was_refused = threading.Event(), threading.Event()
            recorder = Recorder()
            callers = [
                Caller(server.address, has_room, was_refused, recorder) for _ in range(CALLERS)
            ]
            for caller in callers:
                caller.start()
            # Of any of them: one whose item is written waits for its sync as long as there is no
            # room, and then for no longer than a call may take.
            assert was_refused.wait(60)
            time.sleep(2.5)  # the syncs of a second or two find no room, either

            grow(tmp_path)
            has_room.set()
            for caller in callers:
                caller.join(90)

            assert not any(caller.is_alive() for caller in callers)
            assert all("is full; make room" in text for c in callers for text in c.refusals)
            assert [text for caller in callers for text in caller.unsure] == []
            with queueber.connect(server.address) as client:
                found = observe_drain(ObservedQueue(client.queue(), recorder, "last"))
                final = {"default": read_final_state(client.queue())}
            assert server.stop() == 0
        with RocksStore(tmp_path / "data", read_only=True) as store:
            assert check_store(store) == []

    assert check(recorder.history, final) == []
    assert sorted(found) == sorted(i for caller in callers for i in caller.added)
