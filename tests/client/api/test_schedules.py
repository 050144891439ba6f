"""Schedules through the client, on a real server."""

from datetime import UTC, datetime
from typing import Any

import pytest

import queueber
from queueber.errors import NotFound
from queueber.limits import SCHEDULES_LIST_MAX
from queueber.model import ItemOptions, Missed
from queueber.testing import running_server


def test_a_schedule_from_its_creation_to_its_removal() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        options: dict[str, Any] = {"queue": "reports", "contents": b"x", "zone": "Europe/Berlin"}

        assert client.schedule("nightly", "0 3 * * *", **options) == "created"
        assert client.schedule("nightly", "0 3 * * *", **options) == "unchanged"
        assert client.schedule("nightly", "0 4 * * *", **options, missed="skip") == "changed"

        (listed,) = client.schedules()
        found = client.describe_schedule("nightly")
        assert (listed.contents, found.contents) == (b"", b"x")
        assert (found.when, found.queue, found.zone) == ("0 4 * * *", "reports", "Europe/Berlin")
        assert (found.missed, found.priority, found.is_paused) == (Missed.SKIP, 5, False)
        assert datetime.fromtimestamp(found.next_at_ms / 1000, UTC).hour in (2, 3)

        own: dict[str, Any] = {"attempts": 1, "backoff": [1, 2], "timeout": 30, "expires": 600}
        assert client.schedule("nightly", "0 4 * * *", **options, **own) == "changed"
        own_ms = ItemOptions(1, (1000, 2000), 30_000, 600_000)
        assert client.describe_schedule("nightly").options == own_ms
        assert [each.options for each in client.schedules()] == [own_ms]
        assert client.pause_schedule("nightly")
        assert not client.pause_schedule("nightly")
        assert client.describe_schedule("nightly").is_paused
        item_id = client.run_schedule("nightly")
        assert client.resume_schedule("nightly")

        (item,) = client.queue("reports").poll()
        assert (item.id, item.timeout) == (item_id, 30)
        assert item.attributes["queueber.schedule"] == "nightly"
        assert client.remove_schedule("nightly")
        assert not client.remove_schedule("nightly")
        with pytest.raises(NotFound, match="there is no schedule 'nightly'"):
            client.describe_schedule("nightly")


def test_runs_come_by_themselves_each_once_also_after_a_restart() -> None:
    with running_server() as server:
        with queueber.connect(server.address) as client:
            client.schedule("pulse", "@every 1s", contents=b"tick", missed="all")
            (first,) = client.queue().poll(wait=10)
        server.kill()
        server.start()
        with queueber.connect(server.address) as client:
            (second,) = client.queue().poll(wait=10)

    times = [int(each.attributes["queueber.scheduled_at_ms"]) for each in (first, second)]
    assert times[0] % 1000 == 0
    assert times[1] == times[0] + 1000


def test_a_list_has_all_of_many_pages() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        names = [f"s{number:04}" for number in range(SCHEDULES_LIST_MAX + 5)]
        for name in names:
            client.schedule(name, "@daily")

        assert [each.name for each in client.schedules()] == names
