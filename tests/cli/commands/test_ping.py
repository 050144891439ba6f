import json
import re
from dataclasses import replace

import pytest

import queueber
from tests.cli.conftest import Cli


def test_ping_tells_how_long_the_answer_took_and_who_answered(cli: Cli) -> None:
    answered = cli("ping")

    assert (answered.code, answered.stderr) == (0, "")
    assert re.fullmatch(
        rf"{re.escape(cli.address)}  answered in [\d.]+ ms: "
        rf"version {re.escape(queueber.__version__)}, up for .+\n",
        answered.stdout,
    )


def test_ping_json(cli: Cli) -> None:
    answered = cli("ping", "--json")

    told = json.loads(answered.stdout)
    assert (answered.code, answered.stderr) == (0, "")
    assert (told["version"], told["refusesWrites"]) == (queueber.__version__, None)
    assert 0 < told["milliseconds"] < 30_000
    assert 0 < told["upMs"] < 3_600_000


def test_ping_of_a_server_that_refuses_writes_ends_with_1(
    cli: Cli, client: queueber.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is not made here; `tests/recovery/test_full_disk.py` does."""
    full = replace(client.server(), refuses_writes="the data directory is full")
    monkeypatch.setattr(queueber.Client, "server", lambda _self: full)

    in_words = cli("ping")
    as_json = cli("ping", "--json")

    assert (in_words.code, in_words.stderr) == (
        1,
        "It refuses writes: the data directory is full\n",
    )
    assert as_json.code == 1
    assert json.loads(as_json.stdout)["refusesWrites"] == "the data directory is full"
    assert as_json.stderr == ""
