"""Loads that are repeated after a crash add nothing twice."""

import json
import os
from pathlib import Path

import pytest

import queueber
from queueber.testing import running_server
from tests.cli.conftest import Cli


def write_numbers(file: Path, count: int) -> Path:
    file.write_bytes(b"".join(b"%d\n" % n for n in range(count)))
    return file


def assert_has_numbers(queue: queueber.Queue, count: int) -> None:
    assert [int(item.contents) for item in queue.peek_all()] == list(range(count))


def test_producer_adds_once_however_often_it_is_run(
    cli: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    """Also when it was long enough ago that the server does not know the first calls any more."""
    lines = write_numbers(tmp_path / "lines", 12_345)
    command = ["add", "-q", queue.name, "--lines", "--quiet", "--producer", "load"]

    first = cli.run(*command, stdin=lines)
    again = cli.run(*command, stdin=lines)
    as_json = cli.run(*command, "--json", stdin=lines)

    assert (first.code, first.stdout, first.stderr) == (0, "12345\n", "")
    assert (again.code, again.stdout) == (0, "0\n")
    assert again.stderr == "Not added again: 12,345 items of an earlier run.\n"
    assert json.loads(as_json.stdout) == {"added": 0, "addedBefore": 12_345}
    assert_has_numbers(queue, 12_345)


@pytest.mark.parametrize("stored", [500, 2000, 11_000])
def test_producer_goes_on_where_an_earlier_run_stopped(
    cli: Cli, client: queueber.Client, tmp_path: Path, stored: int
) -> None:
    """The first run finds the queue full; the second, when there is room, adds the rest."""
    name = f"full-at-{stored}"
    client.create_queue(name, items_max=stored)
    lines = write_numbers(tmp_path / "lines", 12_345)
    command = ["add", "-q", name, "--lines", "--quiet", "--producer", "load"]

    full = cli.run(*command, stdin=lines)
    client.configure_queue(name, items_max=0)
    rest = cli.run(*command, stdin=lines)

    in_calls = stored // 1000 * 1000
    assert full.code == 4
    assert full.stderr.endswith(
        f"; {in_calls:,} items were added for certain, "
        "and the same command again adds what is missing\n"
    )
    assert (rest.code, rest.stdout) == (0, f"{12_345 - in_calls}\n")
    assert_has_numbers(client.queue(name), 12_345)


def test_producer_makes_the_same_calls_however_the_input_comes(
    cli: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    lines = write_numbers(tmp_path / "lines", 2500)
    command = ["add", "-q", queue.name, "--lines", "--quiet", "--producer", "load"]

    slow = cli.start(*command)
    assert slow.stdin is not None
    for line in lines.read_bytes().splitlines(keepends=True)[:20]:
        slow.stdin.write(line)
        slow.stdin.flush()
    stdout, _ = slow.communicate(lines.read_bytes()[len("0\n") * 10 + len("10\n") * 10 :], 30)
    again = cli.run(*command, stdin=lines)

    assert (slow.returncode, stdout) == (0, b"2500\n")
    assert (again.code, again.stdout) == (0, "0\n")
    assert_has_numbers(queue, 2500)


@pytest.mark.recovery
def test_producer_survives_the_death_of_server_and_command(tmp_path: Path) -> None:
    lines = write_numbers(tmp_path / "lines", 30_000)
    command = ["add", "--lines", "--producer", "load"]

    with running_server() as server:
        cli = Cli(server.address)
        with lines.open("rb") as stdin:
            dying = cli.start(*command, stdin=stdin)
            assert dying.stdout is not None
            # Its ids do not fit into the pipe: as long as we read no more, it is not done.
            dying.stdout.readline()
            dying.kill()
            dying.communicate(timeout=30)
        with lines.open("rb") as stdin:
            adding = cli.start(*command, "--quiet", stdin=stdin)
            server.kill()
            server.start()
            _, stderr = adding.communicate(timeout=60)
        again = cli.run(*command, "--quiet", "--json", stdin=lines)

        assert (adding.returncode, b"Error" in stderr) in {(0, False), (3, True), (4, True)}
        assert again.code == 0
        assert sum(json.loads(again.stdout).values()) == 30_000
        with queueber.connect(server.address) as client:
            assert_has_numbers(client.queue(), 30_000)


def test_producer_with_a_greater_epoch_begins_anew_and_shuts_out_the_older(
    cli: Cli, queue: queueber.Queue
) -> None:
    command = ["add", "-q", queue.name, "--quiet", "--producer", "load"]

    first = cli(*command, "a", "b")
    second = cli(*command, "--epoch", "2", "c")
    late = cli(*command, "d", "e")

    assert (first.stdout, second.stdout) == ("2\n", "1\n")
    assert (late.code, late.stdout) == (4, "")
    assert "epoch 1 is over" in late.stderr
    assert late.stderr.endswith("; 0 items were added\n")
    assert [item.contents for item in queue.poll(9)] == [b"a", b"b", b"c"]


def test_producer_with_other_input_is_refused_where_that_shows(
    cli: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    command = ["add", "-q", queue.name, "--lines", "--producer", "load"]
    cli.run(*command, stdin=write_numbers(tmp_path / "lines", 10_500))

    longer = cli.run(*command, stdin=write_numbers(tmp_path / "lines", 10_600))

    assert longer.code == 4
    assert "had 500 items, and has 600 now" in longer.stderr
    assert longer.stderr.endswith("; 0 items were added\n")
    assert_has_numbers(queue, 10_500)


def test_producer_compares_a_repeated_call_by_its_contents(cli: Cli, queue: queueber.Queue) -> None:
    command = ["add", "-q", queue.name, "--producer", "load"]
    cli(*command, "a", "b")

    same = cli(*command, "a", "b", "--quiet", "--json")
    other = cli(*command, "a", "c")

    assert same.stdout == '{"added": 0, "addedBefore": 2}\n'
    assert (other.code, other.stdout) == (4, "")
    assert "other contents" in other.stderr
    assert [item.contents for item in queue.poll(9)] == [b"a", b"b"]
    described = " ".join(cli("add", "--help").stdout.split())
    assert "the server compares the contents of a repeated call" in described


def test_producer_prints_the_ids_that_the_server_still_knows(
    cli: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    lines = write_numbers(tmp_path / "lines", 10_000)
    command = ["add", "-q", queue.name, "--lines", "--producer", "load"]

    first = cli.run(*command, stdin=lines).stdout.split()
    again = cli.run(*command, stdin=lines).stdout.split()

    assert len(first) == 10_000
    assert again == first[2000:]


def test_producer_adds_nothing_from_an_empty_stream(cli: Cli, queue: queueber.Queue) -> None:
    added = cli.run(
        "add", "-q", queue.name, "--lines", "--quiet", "--producer", "load", stdin=Path(os.devnull)
    )

    assert (added.code, added.stdout, added.stderr) == (0, "0\n", "")
