import json
import signal
import socket
from pathlib import Path

import pytest

import queueber
from queueber.config import OPTIONS
from queueber.db.families import Family
from queueber.testing import ServerProcess, running_server
from tests.cli.conftest import Cli, Outcome, change_store


def logged(server: ServerProcess, event: str) -> dict[str, object]:
    events = [json.loads(line) for line in server.log_file.read_text().splitlines()]
    (found,) = [each for each in events if each["event"] == event]
    assert isinstance(found, dict)
    return found


def failure(served: Outcome) -> str:
    """The reason in the last event of a server that failed; every line is JSON."""
    *_, last = [json.loads(line) for line in served.stderr.splitlines()]
    assert (last["event"], last["level"]) == ("server_failed", "critical")
    assert last["exit_code"] == served.code
    return str(last["reason"])


def test_serve_takes_options_from_flag_environment_and_file_in_that_order(tmp_path: Path) -> None:
    file = tmp_path / "queueber.toml"
    file.write_text("poll_items_max = 11\nconnections_max = 12\nwaiting_polls_max = 13\n")
    server = ServerProcess(
        tmp_path / "data",
        options=("--config", str(file), "--poll-items-max", "31"),
        environment={"QUEUEBER_POLL_ITEMS_MAX": "21", "QUEUEBER_CONNECTIONS_MAX": "22"},
    )

    server.start()
    try:
        with queueber.connect(server.address) as client:
            described = client.server()
    finally:
        server.stop()

    starting = logged(server, "starting")
    assert starting["poll_items_max"] == described.poll_items_max == 31
    assert starting["connections_max"] == 22
    assert starting["waiting_polls_max"] == 13
    assert starting["calls_in_flight_max"] == 10_000
    assert logged(server, "listening")["address"] == server.address


def test_serve_logs_settings_as_an_object() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        client.create_queue("logged", lease=5, backoff=[1, 2])
        created = logged(server, "queue_created")

    settings = created["settings"]
    assert isinstance(settings, dict)
    assert (settings["lease_ms"], settings["backoff_ms"]) == (5000, [1000, 2000])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_ends_with_0_when_told_to_stop(number: signal.Signals) -> None:
    with running_server() as server:
        assert server.process is not None
        server.process.send_signal(number)

        assert server.process.wait(30) == 0
        assert logged(server, "stopping")["reason"] == number.name
        assert logged(server, "stopped")


def test_serve_refuses_the_data_directory_of_another_server(
    cli: Cli, server: ServerProcess, client: queueber.Client
) -> None:
    second = cli.run("serve", "--data-dir", str(server.data_dir), "--listen", "127.0.0.1:0")

    assert second.code == 5
    assert failure(second) == (
        f"the data directory {server.data_dir} is in use by another server; "
        "stop it, or choose another with --data-dir"
    )
    assert "Traceback" not in second.stderr
    assert client.server().version == queueber.__version__


def test_serve_says_that_the_address_is_in_use(cli: Cli, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        second = cli.run("serve", "--data-dir", str(tmp_path / "data"), "--listen", address)

    assert second.code == 5
    assert failure(second) == (
        f"cannot listen on {address}: the address is in use; choose another with --listen"
    )
    assert "Traceback" not in second.stderr


def test_serve_says_that_the_data_directory_cannot_be_made(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_text("mine")

    served = cli.run("serve", "--data-dir", str(file), "--listen", "127.0.0.1:0")

    assert served.code == 5
    assert str(file) in failure(served)
    assert file.read_text() == "mine"


def test_serve_that_fails_with_console_logs_says_so_in_plain_text(
    cli: Cli, server: ServerProcess
) -> None:
    command = ["serve", "--data-dir", str(server.data_dir), "--listen", "127.0.0.1:0"]

    second = cli.run(*command, "--log-format", "console")

    assert second.code == 5
    assert second.stderr.splitlines()[-1].startswith("Error: the data directory ")
    assert "server_failed" not in second.stderr


def test_serve_with_a_damaged_store_says_what_to_do(cli: Cli, tmp_path: Path) -> None:
    with running_server(data_dir=tmp_path / "data") as server:
        pass
    change_store(server.data_dir, Family.COUNTERS, None)

    served = cli.run("serve", "--data-dir", str(server.data_dir), "--listen", "127.0.0.1:0")

    assert served.code == 5
    assert failure(served) == (
        "the records of queue number 1 cannot be read; run 'queueber verify', "
        "and restore the store from a backup"
    )


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("listne = 'x'\n", "sets listne; known are audit_file"),
        ("poll_items_max = 'many'\n", "'many' is not a number"),
        ("poll_items_max = 0\n", "0 is outside 1 to 10000"),
        ("not toml", "cannot read"),
        (None, "cannot read"),
    ],
)
def test_serve_with_a_wrong_file_starts_nothing(
    cli: Cli, tmp_path: Path, content: str | None, told: str
) -> None:
    file = tmp_path / "queueber.toml"
    if content is not None:
        file.write_text(content)

    served = cli("serve", "--data-dir", str(tmp_path / "data"), "--config", str(file))

    assert (served.code, served.stdout) == (2, "")
    assert told in served.stderr
    assert served.stderr.startswith("Error: ")
    assert not (tmp_path / "data").exists()


def test_serve_with_a_wrong_flag_or_variable_names_it(cli: Cli, tmp_path: Path) -> None:
    folder = ["--data-dir", str(tmp_path / "data")]

    by_flag = cli("serve", *folder, "--connections-max", "few")
    by_variable = Cli(environment={"QUEUEBER_DURABILITY": "never"})("serve", *folder)

    assert (by_flag.code, by_flag.stdout) == (2, "")
    assert by_flag.stderr == "Error: --connections-max: 'few' is not a number\n"
    assert (by_variable.code, by_variable.stdout) == (2, "")
    assert by_variable.stderr == "Error: QUEUEBER_DURABILITY: 'never' is not one of sync, os\n"
    assert not (tmp_path / "data").exists()


def test_serve_has_a_flag_for_every_option(cli: Cli) -> None:
    told = cli("serve", "--help")

    assert told.code == 0
    for option in OPTIONS:
        assert f"  {option.flag} " in told.stdout


def test_serve_refuses_a_directory_that_holds_something_else(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("mine")

    served = cli.run("serve", "--data-dir", str(tmp_path), "--listen", "127.0.0.1:0")

    assert served.code == 5
    assert "notes.md" in failure(served)
    assert "--data-dir" in failure(served)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.md"]
