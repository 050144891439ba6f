import json

import pytest

import queueber
from tests.cli.conftest import Cli


def test_batches_are_forgotten_by_name(cli: Cli, queue: queueber.Queue) -> None:
    for name in ("a", "b"):
        queue.add(b"x", batch=name)
        queue.poll().remove()

    shown = cli("forget", "a", "unknown", "-q", queue.name)
    again = cli("forget", "a", "-q", queue.name, "--json")

    assert (shown.code, again.code) == (0, 1)
    assert shown.stdout == "1 batch forgotten\n"
    assert json.loads(again.stdout) == {"forgotten": 0}
    assert [each.receipt.batch for each in queue.batches().batches] == ["b"]


def test_batches_are_forgotten_by_age(cli: Cli, queue: queueber.Queue) -> None:
    for name in ("a", "b"):
        queue.add(b"x", batch=name)
        queue.poll().remove()
    queue.add(b"x", batch="live")

    young = cli("forget", "--unchanged-for", "3600", "-q", queue.name)
    all_of_them = cli("forget", "--unchanged-for", "0", "-q", queue.name)

    assert young.stdout == "0 batches forgotten\n"
    assert all_of_them.stdout == "2 batches forgotten\n"
    assert [each.receipt.batch for each in queue.batches().batches] == ["live"]
    with pytest.raises(queueber.FailedPrecondition, match=r"'live' .* has 1 live items"):
        queue.forget_batch("live")


def test_names_or_an_age_must_be_given(cli: Cli, queue: queueber.Queue) -> None:
    for arguments in ((), ("a", "--unchanged-for", "1")):
        refused = cli("forget", *arguments, "-q", queue.name)
        assert refused.code == 2
        assert "give names of batches, or --unchanged-for" in refused.stderr
