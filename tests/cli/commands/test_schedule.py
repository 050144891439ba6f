import json
from datetime import UTC, datetime, timedelta

import pytest

import queueber
from tests.cli.conftest import Cli


def test_schedule_from_its_creation_to_its_removal(cli: Cli, client: queueber.Client) -> None:
    added = cli(
        "schedule", "add", "nightly", "0 3 * * *", "clean up", "--zone", "Asia/Kolkata",
        "--attribute", "kind=cleaning", "--missed", "all", "--priority", "7", "-q", "cleaning",
        "--attempts", "1", "--backoff", "1,2", "--timeout", "30", "--expires", "600",
    )  # fmt: skip
    shown = cli("schedule", "show", "nightly").stdout
    as_json = json.loads(cli("schedule", "show", "nightly", "--json").stdout)
    again = cli("schedule", "add", "nightly", "30 4 * * *", "-q", "cleaning", "--json")

    assert (added.code, added.stderr) == (0, "")
    assert added.stdout.startswith("nightly  created; next 2")
    assert added.stdout.endswith(" 03:00:00+05:30\n")
    own = "of its own attempts_max 1, backoff 1 s, 2 s, timeout 30 s, expires after 10 min"
    assert own in " ".join(shown.split())
    assert (as_json["attemptsMax"], as_json["backoffMs"]) == (1, [1000, 2000])
    assert (as_json["timeoutMs"], as_json["expiresMs"]) == (30_000, 600_000)
    assert "options" not in as_json
    assert json.loads(again.stdout) == {"stored": "changed"}
    assert cli("schedule", "pause", "nightly").stdout == "nightly  paused\n"
    paused = cli("schedule", "pause", "nightly")
    assert (paused.code, paused.stdout) == (1, "nightly  not paused: it was paused before\n")
    assert json.loads(cli("schedule", "run", "nightly", "--json").stdout).keys() == {"id"}
    assert cli("schedule", "resume", "nightly").stdout == "nightly  resumed\n"
    resumed = cli("schedule", "resume", "nightly")
    assert (resumed.code, resumed.stdout) == (1, "nightly  not resumed: it was not paused\n")
    removed = cli("schedule", "remove", "nightly", "--json")
    assert json.loads(removed.stdout) == {"removed": True}
    gone = cli("schedule", "remove", "nightly")
    assert (gone.code, gone.stdout) == (1, "nightly  not removed: there is no such schedule\n")


def test_schedules_are_listed_and_shown(cli: Cli, client: queueber.Client) -> None:
    client.schedule("b-daily", "@daily", contents=b"d", zone="Europe/Berlin")
    client.schedule("a-weekly", "@weekly", attributes={"k": "v"})
    client.pause_schedule("a-weekly")

    headings, first, second = cli("schedule").stdout.splitlines()
    listed = [json.loads(line) for line in cli("schedule", "list", "--json").stdout.splitlines()]
    shown = cli("schedule", "show", "a-weekly").stdout
    as_json = json.loads(cli("schedule", "show", "b-daily", "--json").stdout)

    assert headings.split() == ["schedule", "when", "zone", "queue", "next", "last", "runs"]
    assert first.split() == ["a-weekly", "@weekly", "UTC", "default", "0", "paused"]
    assert second.split()[:4] == ["b-daily", "@daily", "Europe/Berlin", "default"]
    assert [each["name"] for each in listed] == ["a-weekly", "b-daily"]
    assert "contents" not in listed[0]
    assert ["attribute", "k", "v"] in [line.split() for line in shown.splitlines()]
    assert (as_json["contents"], as_json["contentsBase64"]) == ("d", "ZA==")
    for name in ("a-weekly", "b-daily"):
        client.remove_schedule(name)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["add", "x", "0 25 * * *"], "when: '25' is no hour"),
        (["add", "x", "@daily", "--zone", "Mars"], "zone: 'Mars' is no time zone"),
        (["pause", "x"], "there is no schedule 'x'"),
        (["run", "x"], "there is no schedule 'x'"),
    ],
)
def test_what_is_wrong_is_told(cli: Cli, arguments: list[str], words: str) -> None:
    outcome = cli("schedule", *arguments)

    assert outcome.code != 0
    assert words in outcome.stderr


@pytest.mark.parametrize("at", ["2020-01-01T08:00Z", "2020-01-01 08:00 Europe/Berlin"])
def test_add_at_a_time_that_has_passed_is_now(cli: Cli, client: queueber.Client, at: str) -> None:
    added = cli("add", "early", "--at", at, "-q", "early")

    assert (added.code, added.stderr) == (0, "")
    assert client.queue("early").stats().delayed == 0


def test_add_at_a_time_to_come_waits_for_it(cli: Cli, client: queueber.Client) -> None:
    later = (datetime.now(UTC) + timedelta(days=2)).isoformat()

    assert cli("add", "a", "b", "--at", later, "-q", "later").code == 0

    stats = client.queue("later").stats()
    assert (stats.ready, stats.delayed) == (0, 2)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--at", "2030-01-01T08:00"], "has no time zone; add an offset"),
        (["--at", "tomorrow"], "'tomorrow' is no time; give one such as"),
        (["--at", "2030-01-01T08:00 Mars"], "is no time"),
        (["--at", "9000-01-01T08:00Z"], "--at: 9000-01-01 08:00:00+00:00 is too far away"),
        (["--at", "2020-01-01T08:00Z", "--delay", "5"], "--at and --delay do not go together"),
    ],
)
def test_add_at_a_wrong_time_is_refused(cli: Cli, flags: list[str], words: str) -> None:
    outcome = cli("add", "x", *flags)

    assert outcome.code != 0
    assert words in outcome.stderr
