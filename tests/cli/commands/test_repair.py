"""`queueber repair`: a new store that is sound, the old one untouched, and every loss told."""

import shutil
from pathlib import Path
from random import Random

import pytest

import queueber
from queueber.db.families import Family
from queueber.limits import BLOCK_BYTES_MAX
from queueber.testing import running_server
from tests.cli.conftest import Cli, change_store, digests

ITEMS = 400
ITEM_BYTES = 500
BLOCK_ITEMS = BLOCK_BYTES_MAX // ITEM_BYTES


@pytest.fixture(scope="module")
def stopped_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data_dir = tmp_path_factory.mktemp("stopped") / "data"
    with running_server(data_dir=data_dir) as server, queueber.connect(server.address) as client:
        queue = client.queue()
        queue.add([Random(n).randbytes(ITEM_BYTES) for n in range(ITEMS)], batch="all")
        queue.poll(3)
        client.queue("other").add(b"later", delay=1000)
    return data_dir


@pytest.fixture
def data_dir(stopped_store: Path, tmp_path: Path) -> Path:
    shutil.copytree(stopped_store, tmp_path / "data")
    return tmp_path / "data"


def repaired(cli: Cli, data_dir: Path, code: int) -> tuple[list[str], Path]:
    """What was told, but for the last line, and the new store, which is sound."""
    into = data_dir.with_name("repaired")
    before = digests(data_dir)
    answer = cli("repair", "--data-dir", str(data_dir), "--into", str(into))
    assert (answer.code, answer.stderr) == (code, "")
    assert digests(data_dir) == before
    *losses, last = answer.stdout.splitlines()
    assert last.startswith(f"{into} is sound: ")
    verified = cli("verify", "--data-dir", str(into))
    assert (verified.code, verified.stderr) == (0, "")
    return losses, into


def test_repair_of_a_sound_store_is_a_copy(cli: Cli, data_dir: Path) -> None:
    losses, into = repaired(cli, data_dir, 0)

    assert losses == []
    assert sorted(file.name for file in into.iterdir() if file.name == "repair-unfinished") == []
    with running_server(data_dir=into) as server, queueber.connect(server.address) as client:
        assert client.queue().stats().ready == ITEMS - 3
        assert client.queue().stats().leased == 3
        assert client.queue("other").stats().delayed == 1


def test_repair_of_a_damaged_block_saves_the_rest(cli: Cli, data_dir: Path) -> None:
    largest = max(data_dir.glob("*.sst"), key=lambda file: file.stat().st_size)
    held = bytearray(largest.read_bytes())
    held[len(held) // 2] ^= 1
    largest.write_bytes(held)
    found = cli("verify", "--data-dir", str(data_dir))
    assert found.code == 1
    assert largest.name in found.stdout
    assert found.stdout.endswith("1 place cannot be read; the rules were not checked\n")

    losses, into = repaired(cli, data_dir, 1)

    assert losses[0].startswith("cannot be read: items between ")
    assert "default: 3 leases ended: their items are ready again" not in losses
    assert "default: 1 leases ended: their items are ready again" in losses
    # RocksDB may store two of our blocks as one, as their records are about as large as its blocks.
    lost = next(
        count
        for count in (BLOCK_ITEMS, 2 * BLOCK_ITEMS)
        if f"default: {count} items of batches that are lost: they count as dead" in losses
    )
    with running_server(data_dir=into) as server, queueber.connect(server.address) as client:
        queue = client.queue()
        ready = queue.stats().ready
        assert ready == ITEMS - lost
        polled = queue.poll(1000)
        assert len(polled.ids) == ready
        assert all(polled.remove())
        receipt = queue.receipt("all")
        assert (receipt.complete, receipt.done, receipt.dead) == (True, ready, ITEMS - ready)


def test_repair_makes_every_rule_hold_again(cli: Cli, data_dir: Path) -> None:
    change_store(data_dir, Family.ITEMS, None)
    assert cli("verify", "--data-dir", str(data_dir)).code == 1

    losses, _ = repaired(cli, data_dir, 1)

    # The first block has the three that are leased, and others that are ready.
    assert "default: 2 entries of items that cannot be read, or are gone" in losses
    lost = f"default: {BLOCK_ITEMS} items of batches that are lost: they count as dead"
    assert lost in losses


@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST-*"])
def test_repair_without_a_list_of_files(cli: Cli, data_dir: Path, name: str) -> None:
    for file in data_dir.glob(name):
        file.unlink()
    refused = cli("verify", "--data-dir", str(data_dir))
    assert refused.code == 5
    assert "'queueber repair' saves what can be read" in refused.stderr

    losses, into = repaired(cli, data_dir, 1)

    assert len(losses) == 1
    with running_server(data_dir=into) as server, queueber.connect(server.address) as client:
        assert client.queue().stats().ready == ITEMS - 3


def test_repair_refuses_a_target_that_exists(cli: Cli, data_dir: Path) -> None:
    answer = cli("repair", "--data-dir", str(data_dir), "--into", str(data_dir))

    assert answer.code == 2
    assert answer.stderr == f"Error: --into: {data_dir} is not empty; name a new directory\n"


def test_repair_of_nothing_creates_nothing(cli: Cli, tmp_path: Path) -> None:
    into = tmp_path / "new"

    answer = cli("repair", "--data-dir", str(tmp_path / "none"), "--into", str(into))

    assert (answer.code, into.exists()) == (5, False)
