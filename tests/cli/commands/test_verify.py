import fcntl
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import queueber
from queueber.db.families import Family
from queueber.testing import ServerProcess, running_server
from tests.cli.conftest import Cli, change_store, digests


@pytest.fixture(scope="module")
def stopped_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two queues, four items: one is leased, one is delayed."""
    data_dir = tmp_path_factory.mktemp("stopped") / "data"
    with running_server(data_dir=data_dir) as server, queueber.connect(server.address) as client:
        client.queue().add([b"a", b"b", b"c"])
        client.queue().poll()
        client.queue("other").add(b"later", delay=1000)
    return data_dir


@pytest.fixture
def data_dir(stopped_store: Path, tmp_path: Path) -> Path:
    shutil.copytree(stopped_store, tmp_path / "data")
    return tmp_path / "data"


def damage_the_log(data_dir: Path) -> None:
    """That of a server which was killed: after a shutdown nothing in it counts any more."""
    with running_server(data_dir=data_dir) as server, queueber.connect(server.address) as client:
        for number in range(10):
            client.queue().add(b"%d" % number)
        server.kill()
    log = max(data_dir.glob("*.log"), key=lambda file: file.stat().st_size)
    written = bytearray(log.read_bytes())
    middle = len(written) // 2
    written[middle : middle + 40] = bytes(40)
    log.write_bytes(written)


def damage_the_list_of_files(data_dir: Path) -> None:
    (data_dir / "CURRENT").write_text("junk")


def test_verify_of_a_sound_store_changes_nothing(cli: Cli, data_dir: Path) -> None:
    before = digests(data_dir)

    verified = cli.run("verify", "--data-dir", str(data_dir))

    assert (verified.code, verified.stderr) == (0, "")
    assert verified.stdout == f"{data_dir} is sound: 2 queues, 4 items\n"
    assert digests(data_dir) == before


def test_verify_json_tells_what_a_sound_store_holds(cli: Cli, data_dir: Path) -> None:
    verified = cli("verify", "--data-dir", str(data_dir), "--json")

    assert (verified.code, verified.stderr) == (0, "")
    assert json.loads(verified.stdout) == {
        "dataDir": str(data_dir),
        "sound": True,
        "queues": 2,
        "items": 4,
        "topics": 0,
        "remarks": [],
        "damage": [],
    }


def test_verify_json_has_every_violation(cli: Cli, data_dir: Path) -> None:
    change_store(data_dir, Family.ITEMS, None)

    verified = cli("verify", "--data-dir", str(data_dir), "--json")

    told = json.loads(verified.stdout)
    assert (verified.code, verified.stderr) == (1, "")
    assert (told["sound"], told["queues"], told["items"], told["topics"]) == (False, *[None] * 3)
    assert [line.split()[0] for line in told["damage"]] == ["I2", "I2", "I1", "I5", "I5"]


def test_verify_finds_the_data_directory_in_the_environment(data_dir: Path) -> None:
    verified = Cli(environment={"QUEUEBER_DATA_DIR": str(data_dir)})("verify")

    assert (verified.code, verified.stdout) == (0, f"{data_dir} is sound: 2 queues, 4 items\n")


def test_verify_prints_every_violation(cli: Cli, data_dir: Path) -> None:
    last_id = change_store(data_dir, Family.ITEMS, None)[4:].hex()

    verified = cli("verify", "--data-dir", str(data_dir))

    *violations, summary = verified.stdout.splitlines()
    assert (verified.code, verified.stderr) == (1, "")
    missing = f"items up to {last_id}, but no block that they are in"
    assert violations[0] == f"I2 default: visibility_index has 2 {missing}"
    assert [line.split()[0] for line in violations] == ["I2", "I2", "I1", "I5", "I5"]
    assert summary == f"{data_dir} is damaged: 5 violations"


@pytest.mark.parametrize("break_it", [damage_the_log, damage_the_list_of_files])
def test_verify_json_tells_of_a_store_that_cannot_be_opened(
    cli: Cli, data_dir: Path, break_it: Callable[[Path], None]
) -> None:
    break_it(data_dir)

    verified = cli("verify", "--data-dir", str(data_dir), "--json")

    told = json.loads(verified.stdout)
    assert verified.code == 5
    assert (told["sound"], told["queues"], len(told["damage"])) == (False, None, 1)
    assert told["damage"][0] in verified.stderr


def test_verify_of_a_file_that_rocksdb_refuses_ends_with_5(cli: Cli, data_dir: Path) -> None:
    (data_dir / "CURRENT").write_text("junk")

    verified = cli("verify", "--data-dir", str(data_dir))

    assert (verified.code, verified.stdout) == (5, "")
    assert verified.stderr.startswith(f"Error: cannot open the store at {data_dir}: Corruption")


def test_verify_of_another_format_ends_with_5(cli: Cli, data_dir: Path) -> None:
    change_store(data_dir, Family.DEFAULT, (99).to_bytes(4))

    verified = cli("verify", "--data-dir", str(data_dir))

    assert (verified.code, verified.stdout) == (5, "")
    assert "the store has format 99" in verified.stderr


def test_verify_refuses_the_store_of_a_running_server(
    cli: Cli, server: ServerProcess, queue: queueber.Queue
) -> None:
    verified = cli.run("verify", "--data-dir", str(server.data_dir))

    assert (verified.code, verified.stdout) == (5, "")
    assert verified.stderr == (
        f"Error: the data directory {server.data_dir} is in use by a running server; "
        "stop it first\n"
    )
    assert len(queue.add(b"the server goes on")) == 1


def test_verify_keeps_a_server_from_starting_meanwhile(cli: Cli, data_dir: Path) -> None:
    """The lock that verify holds is one that a server respects."""
    with (data_dir / "LOCK").open("rb") as lock:
        fcntl.lockf(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)

        served = cli.run("serve", "--data-dir", str(data_dir), "--listen", "127.0.0.1:0")

    assert served.code == 5
    assert "is in use" in served.stderr.splitlines()[-1]


@pytest.mark.parametrize("makes_folder", [False, True])
def test_verify_without_a_store_creates_nothing(
    cli: Cli, tmp_path: Path, makes_folder: bool
) -> None:
    folder = tmp_path / "data"
    if makes_folder:
        folder.mkdir()

    verified = cli("verify", "--data-dir", str(folder))

    assert (verified.code, verified.stdout) == (5, "")
    assert verified.stderr == f"Error: there is no store in {folder}; nothing was created\n"
    assert folder.exists() == makes_folder
    assert not makes_folder or not list(folder.iterdir())
