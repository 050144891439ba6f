"""A full disk: no false acknowledgement, clear refusals, reads go on, and it recovers by itself."""

import contextlib
import time
from pathlib import Path
from random import Random
from typing import Any

import grpc
import pytest

import queueber
from faults.checker import check
from faults.observed import ObservedQueue, observe_drain, read_final_state
from faults.recorder import Recorder
from queueber.db.families import Family
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.errors import Unavailable
from queueber.testing import running_server
from tests.support.disks import grow, small_disk
from tests.support.folders import copy_open_store
from tests.support.grpc import Sluice, running_grpc
from tests.support.loading import built_part

ITEM = bytes(500_000)


def try_to_add(queue: ObservedQueue) -> list[bytes]:
    try:
        return queue.add([ITEM])
    except queueber.Unavailable:
        return []


@pytest.mark.recovery
@pytest.mark.timeout(120)
def test_a_full_disk_refuses_adds_keeps_what_was_acknowledged_and_recovers(tmp_path: Path) -> None:
    with small_disk(tmp_path, "64m"):
        with running_server(data_dir=tmp_path / "data") as server:
            added: list[bytes] = []
            recorder = Recorder()
            with queueber.connect(server.address, retry_timeout=0) as client:
                queue = ObservedQueue(client.queue("full"), recorder, "before")
                while (outcome := try_to_add(queue)) and len(added) < 1000:
                    added += outcome
                assert 20 < len(added) < 1000
                with pytest.raises(queueber.Unavailable, match="data directory is full"):
                    queue.add([ITEM])
                assert client.queue("full").stats().ready == len(added)
                assert "data directory is full" in client.server().refuses_writes

                grow(tmp_path)
                give_up_at = time.monotonic() + 30
                while client.server().refuses_writes:  # nobody writes, and it finds out itself
                    assert time.monotonic() < give_up_at
                    time.sleep(0.1)
            with queueber.connect(server.address, retry_timeout=60) as client:
                queue = ObservedQueue(client.queue("full"), recorder, "after")
                added += queue.add([b"there is room"])
                polled = observe_drain(queue)
                final = read_final_state(client.queue("full"))
            assert server.stop() == 0
        with RocksStore(tmp_path / "data", read_only=True) as store:
            assert check_store(store) == []

    assert check(recorder.history, {"full": final}) == []
    assert (polled, final.items) == (added, {})


@pytest.mark.recovery
@pytest.mark.timeout(120)
def test_a_full_disk_is_unavailable_over_grpc_and_nothing_acknowledged_is_lost(
    tmp_path: Path,
) -> None:
    with (
        small_disk(tmp_path, "64m"),
        running_server(data_dir=tmp_path / "data") as server,
        running_grpc(server.address, "--retry-timeout-ms=0") as (_, address),
        Sluice(address) as sluice,
    ):
        sluice.publish("full", b"0")
        stream = sluice.subscribe("full")
        stream.credit(1)
        stream.take(1)
        published: list[str] = []
        refusal: Any = None
        while refusal is None and len(published) < 1000:
            try:
                published.append(sluice.publish("full", ITEM).message_id)
            except grpc.RpcError as error:
                refusal = error

        assert (refusal.code(), len(published) > 20) == (grpc.StatusCode.UNAVAILABLE, True)
        assert "data directory is full" in refusal.details()
        stream.credit(len(published))
        assert [each.message_id for each in stream.take(len(published))] == published
        stream.cancel()


@pytest.mark.recovery
def test_a_sync_that_comes_while_the_disk_is_full_does_not_keep_it_from_recovering(
    tmp_path: Path,
) -> None:
    """As that of an add just before the one that found no room."""

    def put(number: int) -> None:
        batch = store.batch()
        batch.put(Family.ITEMS, number.to_bytes(4), Random(number).randbytes(300_000))
        store.write(batch)

    with small_disk(tmp_path, "24m"):
        with RocksStore(tmp_path / "data") as store:
            number = 0
            with contextlib.suppress(Unavailable):
                while number < 1000:
                    put(number)
                    number += 1
            assert number < 1000
            for _ in range(3):
                with pytest.raises(Unavailable, match="is full"):
                    store.sync()

            grow(tmp_path)
            give_up_at = time.monotonic() + 60
            while True:
                try:
                    store.sync()
                    break
                except Unavailable:
                    assert time.monotonic() < give_up_at
                    time.sleep(0.2)
            put(number)
            copy_open_store(tmp_path / "data", tmp_path / "copy")
        with RocksStore(tmp_path / "copy", read_only=True) as copy:
            assert len(copy.scan(Family.ITEMS, b"", b"\xff" * 5, 10_000)) == number + 1


_FULL = "data directory is full; make room"
_CUT_SHORT = r"'000001-items.sst' has \d+ bytes, not \d+"


def stage_all(load: queueber.Load, ref: queueber.PartRef, files: dict[str, bytes]) -> None:
    for name, held in files.items():
        load.stage(ref, name, held)


@pytest.mark.recovery
@pytest.mark.timeout(120)
def test_a_full_disk_refuses_files_of_a_load_which_goes_on_when_there_is_room(
    tmp_path: Path,
) -> None:
    random, ref = Random(1), queueber.PartRef(0, "first")
    rows = queueber.Rows([random.randbytes(100_000) for _ in range(600)])
    with small_disk(tmp_path, "48m"):
        with running_server(data_dir=tmp_path / "data") as server:
            with queueber.connect(server.address, retry_timeout=0) as client:
                load = client.queue("full").load("nightly")
                part, files = built_part(load.facts, ref, rows)
                with pytest.raises(queueber.Unavailable, match="data directory is full; make room"):
                    stage_all(load, ref, files)
                # The log may have room of its own left: then the file is found to be cut short.
                with pytest.raises(queueber.QueueberError, match=f"{_FULL}|{_CUT_SHORT}") as caught:
                    load.finish_part(part)
                assert type(caught.value) in (queueber.Unavailable, queueber.InvalidArgument)

            grow(tmp_path)
            with queueber.connect(server.address, retry_timeout=60) as client:
                queue = client.queue("full")
                load = queue.load("nightly")
                stage_all(load, ref, files)
                load.finish_part(part)
                assert load.commit([ref]).rows == queue.stats().ready == 600
            assert server.stop() == 0
        with RocksStore(tmp_path / "data", read_only=True) as store:
            assert check_store(store) == []
