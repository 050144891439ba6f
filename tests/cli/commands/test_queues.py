import itertools
import json
from dataclasses import replace
from typing import Any

import pytest

import queueber
from queueber.cli.output import to_json
from queueber.model import QueueSettings
from tests.cli.conftest import Cli, rows_of, run_on_terminal


def names(client: queueber.Client) -> list[str]:
    return [each.name for each in client.queues()]


def settings_of(client: queueber.Client, name: str) -> QueueSettings:
    return client.queue(name).stats().settings


@pytest.mark.parametrize("command", [["queues"], ["queues", "list"]])
def test_queues_lists_them_in_order_of_name(
    cli: Cli, client: queueber.Client, command: list[str]
) -> None:
    shown = cli(*command)
    as_json = cli(*command, "--json")

    headings, *rows = shown.stdout.splitlines()
    assert (shown.code, shown.stderr) == (0, "")
    assert headings.split()[:3] == ["queue", "ready", "delayed"]
    assert [row.split()[0] for row in rows] == names(client)
    assert [json.loads(line)["name"] for line in as_json.stdout.splitlines()] == names(client)


def test_queues_list_tells_who_is_paused_and_what_is_dead(
    cli: Cli, client: queueber.Client
) -> None:
    client.create_queue("paused-with-dead", attempts_max=1)
    queue = client.queue("paused-with-dead")
    queue.add(b"12345")
    queue.poll().fail("")
    queue.pause()

    shown = cli("queues")

    row = next(line for line in shown.stdout.splitlines() if line.startswith(queue.name))
    assert row.split() == [queue.name, "0", "0", "0", "1", "5", "0.0", "paused"]


EVERY_FLAG = {
    "--items-max": "10",
    "--bytes-max": "2000",
    "--item-bytes-max": "300",
    "--lease": "0.5",
    "--attempts-max": "7",
    "--backoff-base": "0.25",
    "--backoff-factor": "1.5",
    "--backoff-cap": "60",
    "--backoff-jitter": "0",
    "--dedup-window": "120",
    "--result-age": "86400",
    "--result-bytes-max": "4000",
    "--concurrency-max": "5",
    "--rate": "100/60",
    "--cap-by": "who",
    "--dead-age": "3600",
}
EVERY_SETTING = QueueSettings(
    items_max=10,
    bytes_max=2000,
    item_bytes_max=300,
    lease_ms=500,
    attempts_max=7,
    backoff_base_ms=250,
    backoff_factor=1.5,
    backoff_cap_ms=60_000,
    backoff_jitter=0.0,
    dedup_window_ms=120_000,
    result_age_ms=86_400_000,
    result_bytes_max=4000,
    concurrency_max=5,
    rate_items=100,
    rate_ms=60_000,
    cap_by="who",
    dead_age_ms=3_600_000,
)


def test_caps_by_an_attribute_are_set_changed_and_taken_away(
    cli: Cli, client: queueber.Client
) -> None:
    refused = cli("queues", "create", "capped", "--cap-by-rate", "100/60")
    cli("queues", "create", "capped", "--cap-by", "who", "--cap-by-concurrency-max", "5")
    changed = cli("queues", "configure", "capped", "--cap-by-rate", "100/60")
    shown = cli("queues", "show", "capped").stdout
    capped = settings_of(client, "capped")
    cli("queues", "configure", "capped", "--cap-by-rate", "0", "--cap-by-concurrency-max", "0")

    assert (refused.code, refused.stdout, changed.code) == (2, "", 0)
    assert "name the attribute that cap_by_rate is about" in refused.stderr
    assert "100 in 1 min" in shown
    by_who = QueueSettings(cap_by="who")
    expected: dict[str, Any] = {
        "cap_by_rate_items": 100,
        "cap_by_rate_ms": 60_000,
        "cap_by_concurrency_max": 5,
    }
    assert capped == replace(by_who, **expected)
    assert settings_of(client, "capped") == by_who


def test_queues_create_with_every_setting(cli: Cli, client: queueber.Client) -> None:
    flags = list(itertools.chain.from_iterable(EVERY_FLAG.items()))

    created = cli("queues", "create", "limited", *flags)
    again = cli("queues", "create", "limited", *flags, "--json")
    other = cli("queues", "create", "limited", "--items-max", "11")

    assert (created.code, created.stdout, created.stderr) == (0, "limited  created\n", "")
    assert (again.code, again.stdout) == (0, '{"created": false}\n')
    assert (other.code, other.stdout) == (4, "")
    assert "exists with other settings" in other.stderr
    assert settings_of(client, "limited") == EVERY_SETTING


def test_queues_create_with_a_list_of_delays(cli: Cli, client: queueber.Client) -> None:
    created = cli("queues", "create", "listed", "--backoff", "1,10,0.5")

    assert created.code == 0
    assert settings_of(client, "listed") == QueueSettings(backoff_ms=(1000, 10_000, 500))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--items-max", "-1"], "'-1' is not a number from 0"),
        (["--items-max", "many"], "'many' is not a number from 0"),
        (["--items-max", str(1 << 63)], "is not a number from 0 to 2^63 - 1"),
        (["--attempts-max", "1001"], "--attempts-max: 1001 is too many; the limit is 1000"),
        (["--lease", "0"], "'0' is too short"),
        (["--rate", "100"], "'100' is not ITEMS/SECONDS, such as 100/60, nor 0"),
        (["--rate", "0/60"], "'0/60' is not ITEMS/SECONDS"),
        (["--rate", "5/soon"], "'soon' is not a number of seconds"),
        (["--concurrency-max", "1000001"], "--concurrency-max: 1000001 is too many"),
        (["--backoff", "1,soon"], "'soon' is not a number of seconds"),
        (["--backoff", ""], "'' is not a number of seconds"),
        (["--backoff", ",".join("1" * 101)], "give 1 to 100"),
        (["--backoff", "1", "--backoff-cap", "1"], "not both"),
        (["--backoff-factor", "two"], "'two' is not a number"),
        (["--backoff-factor", "0.5"], "--backoff-factor: 0.5 is not a number from 1 to 100"),
        (["--backoff-jitter", "nan"], "--backoff-jitter: nan is not a number from 0 to 1"),
        (["--dedup-window", "1e9"], "too long; the limit is 2,592,000 seconds (30 d)"),
        (["--dedup-window", "1e12"], "'1e12' is too long; give less than 1e+12 seconds"),
        (["--result-age", "1e8"], "too long; the limit is 31,622,400 seconds (366 d)"),
        (["--dead-age", "1e8"], "too long; the limit is 31,622,400 seconds (366 d)"),
        (["--lease", "1e7"], "too long; the limit is 604,800 seconds (7 d)"),
        (["--backoff", "1,1e8"], "'1e8' is too long; the limit is 31,622,400 seconds"),
        (["--item-bytes-max", str(1 << 40)], "Error: --item-bytes-max: "),
        (["--backoff-base", "100", "--backoff-cap", "1"], "1 s is below --backoff-base"),
        (["--backoff-cap", "0.5"], "--backoff-base, which is 1 s"),
    ],
)
def test_queues_create_with_a_bad_setting_creates_nothing(
    cli: Cli, client: queueber.Client, arguments: list[str], told: str
) -> None:
    created = cli("queues", "create", "never", *arguments)

    assert (created.code, created.stdout) == (2, "")
    assert told in created.stderr
    assert "never" not in names(client)


@pytest.mark.parametrize("flag", EVERY_FLAG)
def test_queues_configure_changes_only_what_is_named(
    cli: Cli, client: queueber.Client, flag: str
) -> None:
    name = f"changing{flag}"
    client.create_queue(name)

    changed = cli("queues", "configure", name, flag, EVERY_FLAG[flag], "--json")

    field = flag.removeprefix("--").replace("-", "_")
    field = field if hasattr(EVERY_SETTING, field) else f"{field}_ms"
    expected = replace(QueueSettings(), **{field: getattr(EVERY_SETTING, field)})
    if flag == "--rate":  # it sets two
        expected = replace(expected, rate_items=EVERY_SETTING.rate_items)
    assert (changed.code, changed.stderr) == (0, "")
    assert settings_of(client, name) == expected
    assert json.loads(changed.stdout) == json.loads(json.dumps(to_json(expected)))


def test_queues_configure_switches_between_the_ways_of_backing_off(
    cli: Cli, client: queueber.Client
) -> None:
    client.create_queue("switching", backoff=queueber.Backoff(base=3, cap=30))

    listed = cli("queues", "configure", "switching", "--backoff", "5,600")
    as_list = settings_of(client, "switching")
    computed = cli("queues", "configure", "switching", "--backoff-cap", "7200")
    as_formula = settings_of(client, "switching")

    assert rows_of(listed.stdout)["backoff"] == "5 s, 10 min"
    assert as_list.backoff_ms == (5000, 600_000)
    assert rows_of(computed.stdout)["backoff"] == "3 s * 2^n up to 2 h, jitter 0.1"
    assert (as_formula.backoff_ms, as_formula.backoff_base_ms) == ((), 3000)


def test_queues_show_tells_the_settings(cli: Cli, client: queueber.Client) -> None:
    client.create_queue("shown", items_max=1234, lease=90, result_age=0)

    shown = cli("queues", "show", "shown")
    as_json = cli("queues", "show", "shown", "--json")
    unknown = cli("queues", "show", "mistyped")

    assert (shown.code, shown.stderr) == (0, "")
    assert rows_of(shown.stdout) == {
        "items, limit": "1,234",
        "bytes, limit": "none",
        "item bytes, limit": "none",
        "lease": "90 s",
        "attempts, limit": "20",
        "isolation": "on",
        "backoff": "1 s * 2^n up to 1 h, jitter 0.1",
        "dedup window": "10 min",
        "result age, limit": "none",
        "result bytes, limit": "none",
        "leased at once, limit": "none",
        "rate, limit": "none",
        "batches, limit": "10,000,000",
        "batches kept for": "7 d",
        "capped by": "none",
        "leased at once of each, limit": "none",
        "rate of each, limit": "none",
        "dead letters kept for": "ever",
    }
    assert json.loads(as_json.stdout)["leaseMs"] == 90_000
    assert (unknown.code, unknown.stdout) == (4, "")
    assert "mistyped" not in names(client)


def test_queues_configure_refuses_an_unknown_queue_and_no_change(
    cli: Cli, client: queueber.Client, queue: queueber.Queue
) -> None:
    unknown = cli("queues", "configure", "mistyped", "--items-max", "1")
    nothing = cli("queues", "configure", queue.name)

    assert (unknown.code, unknown.stdout) == (4, "")
    assert unknown.stderr == "Error: there is no queue 'mistyped'; create it, or check the name\n"
    assert "mistyped" not in names(client)
    assert (nothing.code, nothing.stdout) == (2, "")
    assert "there is nothing to change" in nothing.stderr


def test_queues_delete_asks_first(cli: Cli, client: queueber.Client, queue: queueber.Queue) -> None:
    queue.add(b"a")
    command = ["queues", "delete", queue.name]

    no_code, no_stdout, no_shown = run_on_terminal(cli, *command, typed=b"n\n")
    piped = cli(*command, stdin="y\n")
    assert queue.name in names(client)
    yes_code, yes_stdout, _ = run_on_terminal(cli, *command, typed=b"y\n")

    assert (no_code, no_stdout.decode()) == (1, f"{queue.name}  not deleted: you said no\n")
    assert f"Delete queue {queue.name!r} with 1 item?".encode() in no_shown
    assert (piped.code, piped.stdout) == (2, "")
    assert "give --yes" in piped.stderr
    assert (yes_code, yes_stdout.decode()) == (0, f"{queue.name}  deleted\n")
    assert queue.name not in names(client)


def test_queues_delete_without_asking(
    cli: Cli, client: queueber.Client, queue: queueber.Queue
) -> None:
    deleted = cli("queues", "delete", queue.name, "--yes", "--json")
    again = cli("queues", "delete", queue.name, "--yes")
    unasked = cli("queues", "delete", queue.name)
    default = cli("queues", "delete", "default", "--yes")

    assert (deleted.code, deleted.stdout, deleted.stderr) == (0, '{"deleted": true}\n', "")
    assert (again.code, again.stdout) == (
        1,
        f"{queue.name}  not deleted: there is no such queue\n",
    )
    assert unasked == again
    assert (default.code, default.stdout) == (2, "")
    assert "default" in names(client)
    assert queue.name not in names(client)
