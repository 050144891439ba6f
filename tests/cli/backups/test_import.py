"""`queueber import`: the items of the original, once, as they would have been worked on there."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

import queueber
from queueber.model import ItemInfo
from tests.cli.conftest import Cli
from tests.support.original_store import Original


def item_id(number: int) -> bytes:
    return number.to_bytes(16)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    later = int(time.time()) + 1000
    Original(
        waiting={item_id(1): (b"delayed", later), item_id(2): (b"ready", 1_000)},
        in_progress={item_id(3): b"in progress"},
    ).write(tmp_path / "old")
    return tmp_path / "old"


def test_import_adds_every_item_once(cli: Cli, client: queueber.Client, old: Path) -> None:
    first = cli("import", str(old), "--queue", "imported")
    again = cli("import", str(old), "--queue", "imported", "--json")

    assert (first.code, first.stdout, first.stderr) == (0, "3 items added to imported\n", "")
    assert (again.code, again.stdout) == (0, '{"added": 0, "duplicates": 3}\n')
    queue = client.queue("imported", must_exist=True)
    stats = queue.stats()
    assert (stats.ready, stats.delayed) == (2, 1)
    assert [item.contents for item in queue.poll(10).items] == [b"in progress", b"ready"]
    (delayed,) = queue.peek("delayed").items
    assert (delayed.contents, delayed.key) == (b"delayed", item_id(1).hex())
    assert 900 < delayed.at_ms / 1000 - time.time() <= 1001


def test_each_imported_item_has_one_event_if_the_queue_is_routed(
    cli: Cli, client: queueber.Client, old: Path
) -> None:
    client.create_queue("routed-import")
    client.create_topic("import-events")
    client.topic("import-events").add_source("routed-import", on="insert", payload="full")

    for _ in range(2):
        assert cli("import", str(old), "--queue", "routed-import").code == 0

    events = list(client.topic("import-events").messages())
    assert [(each.payload, each.key) for each in events] == [
        (b"in progress", item_id(3).hex()),
        (b"ready", item_id(2).hex()),
        (b"delayed", item_id(1).hex()),
    ]
    ids = {item.id.hex() for state in ("ready", "delayed") for item in _all(client, state)}
    assert {each.attributes["queueber.id"] for each in events} == ids


def _all(client: queueber.Client, state: Literal["ready", "delayed"]) -> Iterator[ItemInfo]:
    return client.queue("routed-import").peek_all(state)


def test_dry_run_counts_and_adds_nothing(old: Path) -> None:
    unreachable = Cli()

    told = unreachable("import", str(old), "--dry-run")
    as_json = unreachable("import", str(old), "--dry-run", "--json")

    assert (told.code, told.stdout) == (0, f"{old} has 3 items: 2 waiting, 1 in progress\n")
    assert as_json.stdout == '{"items": 3, "waiting": 2, "inProgress": 1}\n'


def test_import_of_something_else_is_refused(cli: Cli, tmp_path: Path) -> None:
    told = cli("import", str(tmp_path), "--queue", "never")

    assert (told.code, told.stdout) == (2, "")
    assert "has no store of the original Queueber" in told.stderr


def test_import_into_a_queue_that_must_exist(cli: Cli, old: Path) -> None:
    told = cli("import", str(old), "--queue", "nowhere", "--must-exist")

    assert told.code == 4
    assert "nowhere" in told.stderr


def test_many_items_are_added_in_calls_of_a_thousand(
    cli: Cli, client: queueber.Client, tmp_path: Path
) -> None:
    Original(
        waiting={item_id(n): (b"%d" % n, 1 + n) for n in range(1, 2501)},
    ).write(tmp_path / "many")

    told = cli("import", str(tmp_path / "many"), "--queue", "many")

    assert told.stdout == "2,500 items added to many\n"
    polled = [item.contents for item in client.queue("many").poll(1000).items]
    assert polled == [b"%d" % n for n in range(1, 1001)]
