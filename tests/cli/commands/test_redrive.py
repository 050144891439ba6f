import pytest

import queueber
from tests.cli.conftest import Cli, run_on_terminal

NO_ID = "00" * 16


@pytest.fixture
def letters(client: queueber.Client, queue: queueber.Queue) -> list[bytes]:
    """Three dead letters in the queue."""
    client.configure_queue(queue.name, attempts_max=1)
    ids = queue.add([b"a", b"b", b"c"])
    queue.poll(3).fail("cannot be done")
    return ids


def test_redrive_makes_dead_letters_ready(
    cli: Cli, queue: queueber.Queue, letters: list[bytes]
) -> None:
    first = letters[0].hex()

    named = cli("redrive", "-q", queue.name, first, first)
    again = cli("redrive", "-q", queue.name, first, "--json")
    rest = cli("redrive", "-q", queue.name, "--all")
    nothing = cli("redrive", "-q", queue.name, "--all", "--json")
    in_words = cli("redrive", "-q", queue.name, "--all")
    two = cli("redrive", "-q", queue.name, first, NO_ID)

    assert (named.code, named.stdout, named.stderr) == (0, "1 item redriven\n", "")
    assert (again.code, again.stdout) == (1, '{"redriven": 0}\n')
    assert (rest.code, rest.stdout) == (0, "2 items redriven\n")
    assert (nothing.code, nothing.stdout) == (0, '{"redriven": 0}\n')
    assert (in_words.code, in_words.stdout) == (0, "0 items redriven: there are no dead letters\n")
    told = "0 items redriven: 2 are no dead letters of the queue\n"
    assert (two.code, two.stdout) == (1, told)
    assert (queue.stats().ready, queue.stats().dead) == (3, 0)


def test_redrive_on_a_terminal(cli: Cli, queue: queueber.Queue, letters: list[bytes]) -> None:
    code, stdout, shown = run_on_terminal(cli, "redrive", "-q", queue.name, "--all")

    assert (code, stdout) == (0, b"3 items redriven\n")
    assert b"3/3" in shown
    assert queue.stats().ready == len(letters)


def test_redrive_needs_ids_or_all_and_not_both(
    cli: Cli, queue: queueber.Queue, letters: list[bytes]
) -> None:
    neither = cli("redrive", "-q", queue.name)
    both = cli("redrive", "-q", queue.name, "--all", letters[0].hex())

    assert (neither.code, neither.stdout) == (2, "")
    assert (both.code, both.stdout) == (2, "")
    assert "give the ids of dead letters, or --all" in neither.stderr
    assert queue.stats().dead == 3
