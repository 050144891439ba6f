"""Schedules in line: stored as a server stores them, and run when a test says so."""

import pytest

import queueber
from queueber.errors import InvalidArgument, NotFound
from queueber.testing import inline

app = queueber.App("127.0.0.1:1")


@app.job("count", attempts=1)
def count(number: int, item: queueber.WorkItem) -> str:
    if number < 0:
        raise ValueError(number)
    return f"{item.attributes['queueber.schedule']} {number}"


def test_a_schedule_is_stored_once_and_runs_when_a_test_says_so() -> None:
    with inline(app) as jobs:
        stored = [
            app.schedule("nightly", "0 3 * * *", count, {"number": 3}),
            app.schedule("nightly", "0 3 * * *", count, {"number": 3}),
            app.schedule("nightly", "0 3 * * *", count, {"number": 4}, zone="Europe/Berlin"),
        ]
        item_id = app.client.run_schedule("nightly")
        (listed,) = app.client.schedules()

        assert stored == ["created", "unchanged", "changed"]
        assert (jobs.ran[0].id, jobs.ran[0].result) == (item_id, b'"nightly 4"')
        assert (listed.zone, listed.runs) == ("Europe/Berlin", 1)
        assert app.client.describe_schedule("nightly") == listed
        assert app.client.remove_schedule("nightly")
        assert not app.client.remove_schedule("nightly")


def test_its_job_fails_as_often_as_it_says() -> None:
    with inline(app) as jobs:
        app.schedule("once", "@daily", count, {"number": -1})
        app.schedule("thrice", "@daily", count, {"number": -1}, attempts=3)
        app.client.run_schedule("once")
        app.client.run_schedule("thrice")

        assert [each.attempts for each in jobs.dead] == [1, 3]


def test_what_is_wrong_is_refused() -> None:
    with inline(app):
        with pytest.raises(NotFound, match="there is no schedule 'weekly'"):
            app.client.run_schedule("weekly")
        with pytest.raises(InvalidArgument, match="when: 'soon' is no schedule"):
            app.schedule("weekly", "soon", count, {"number": 3})
        with pytest.raises(InvalidArgument, match="missing a required argument: 'number'"):
            app.schedule("weekly", "@weekly", count)
