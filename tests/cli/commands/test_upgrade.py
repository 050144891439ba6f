"""`queueber upgrade`: what it tells, what it refuses, and that servers refuse what it is for."""

import json
import tarfile
from pathlib import Path

import pytest

import queueber
from queueber.db.upgrade import swap
from queueber.testing import ServerProcess, running_server
from tests.cli.conftest import Cli, digests, run_on_terminal

STORE = Path(__file__).parents[2] / "engine" / "stores" / "format-4.tar.gz"


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A store of format 4 with 15 items and a load that is not committed."""
    with tarfile.open(STORE) as stored:
        # An argument of `extractall` since 3.11.4; Debian has 3.11.2.
        stored.extraction_filter = getattr(tarfile, "data_filter", None)
        stored.extractall(tmp_path / "data")
    return tmp_path / "data"


def told(data_dir: Path) -> str:
    return (
        "load 'load' of queue 'q' was not committed, and is dropped: run it again\n"
        "the store has format 5 now: queues: 2, items: 15\n"
        f"the old store is kept in {data_dir}/format-4: delete it when you no longer need it\n"
    )


def test_upgrade_tells_what_it_did_and_the_server_goes_on(cli: Cli, data_dir: Path) -> None:
    before = digests(data_dir)

    upgraded = cli.run("upgrade", "--data-dir", str(data_dir))

    assert (upgraded.code, upgraded.stderr) == (0, "")
    assert upgraded.stdout == told(data_dir)
    kept = digests(data_dir / "format-4")
    assert kept.pop("upgrade-report.txt")
    assert kept == before
    verified = cli("verify", "--data-dir", str(data_dir))
    assert (verified.code, verified.stdout) == (0, f"{data_dir} is sound: 2 queues, 15 items\n")
    with running_server(data_dir=data_dir) as server, queueber.connect(server.address) as client:
        assert client.queue("q").stats().dead == 1
        assert client.queue("q").receipt("b").added == 2


def test_upgrade_of_a_store_of_today_has_nothing_to_do(cli: Cli, data_dir: Path) -> None:
    cli("upgrade", "--data-dir", str(data_dir))

    again = cli("upgrade", "--data-dir", str(data_dir))

    assert (again.code, again.stderr) == (0, "")
    assert again.stdout == f"{data_dir} has format 5 already: there is nothing to do\n"


def test_upgrade_shows_its_progress_on_a_terminal(cli: Cli, data_dir: Path) -> None:
    code, stdout, shown = run_on_terminal(cli, "upgrade", "--data-dir", str(data_dir))

    assert (code, stdout.decode()) == (0, told(data_dir))
    assert b"upgrading" in shown
    assert b"15/15" in shown


@pytest.mark.parametrize("command", ["serve", "verify", "repair"])
def test_store_of_format_4_is_refused_with_what_to_do(
    cli: Cli, data_dir: Path, command: str
) -> None:
    before = digests(data_dir)
    flags = {"serve": ("--listen", "127.0.0.1:0"), "repair": ("--into", f"{data_dir}-2")}

    refused = cli.run(command, "--data-dir", str(data_dir), *flags.get(command, ()))

    assert refused.code == 5
    assert (
        "the store has format 4, this version reads format 5; run 'queueber upgrade' on it, with "
        "the same --data-dir"
    ) in refused.stderr
    after = digests(data_dir)
    after.pop("LOCK", None)
    assert after == before
    assert not Path(f"{data_dir}-2").exists()


@pytest.mark.parametrize("command", ["serve", "verify", "repair"])
@pytest.mark.parametrize("renames", [5, 29, 40])
def test_half_swapped_store_is_refused_and_finished_by_the_next_upgrade(
    cli: Cli, data_dir: Path, command: str, renames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = renames

    def move(old: Path, new: Path) -> None:
        nonlocal left
        if not left:
            raise RuntimeError("killed")
        left -= 1
        old.rename(new)

    with monkeypatch.context() as patched:
        patched.setattr(swap, "_move", move)
        assert cli("upgrade", "--data-dir", str(data_dir)).code == 70
    flags = {"serve": ("--listen", "127.0.0.1:0"), "repair": ("--into", f"{data_dir}-2")}

    refused = cli.run(command, "--data-dir", str(data_dir), *flags.get(command, ()))

    assert refused.code == 5
    assert (
        f"an upgrade of the store in {data_dir} was interrupted; run 'queueber upgrade' again: it "
        "goes on from there, and nothing is lost"
    ) in refused.stderr
    finished = cli("upgrade", "--data-dir", str(data_dir))
    assert (finished.code, finished.stdout) == (0, told(data_dir))
    assert cli("verify", "--data-dir", str(data_dir)).code == 0


def test_upgrade_refuses_the_store_of_a_running_server(cli: Cli, server: ServerProcess) -> None:
    refused = cli.run("upgrade", "--data-dir", str(server.data_dir))

    assert (refused.code, refused.stdout) == (5, "")
    assert refused.stderr == (
        f"Error: the data directory {server.data_dir} is in use by a running server; "
        "stop it first\n"
    )


def test_upgrade_without_a_store_creates_nothing(cli: Cli, tmp_path: Path) -> None:
    refused = cli("upgrade", "--data-dir", str(tmp_path / "none"))

    assert (refused.code, refused.stdout) == (5, "")
    assert refused.stderr == f"Error: there is no store in {tmp_path}/none; nothing was created\n"
    assert not (tmp_path / "none").exists()


def test_help_tells_what_happens_to_the_old_store(cli: Cli) -> None:
    shown = cli("upgrade", "--help")

    assert shown.code == 0
    assert "queueber upgrade --data-dir /var/lib/queueber" in shown.stdout
    text = " ".join(shown.stdout.split())
    assert "The old store is not changed." in text
    assert "it may be killed at any time: run it again, and it finishes" in text


def test_serve_says_in_its_log_that_an_upgrade_is_needed(cli: Cli, data_dir: Path) -> None:
    served = cli.run(
        "serve", "--data-dir", str(data_dir), "--listen", "127.0.0.1:0", "--log-format", "json"
    )

    *_, last = [json.loads(line) for line in served.stderr.splitlines()]
    assert (served.code, last["event"]) == (5, "server_failed")
    assert "run 'queueber upgrade'" in last["reason"]
