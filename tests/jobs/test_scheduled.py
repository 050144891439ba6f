"""Jobs that schedules and callbacks enqueue, with the options of the job."""

from typing import Any

import pytest

import queueber
from queueber.errors import InvalidArgument
from queueber.model import ItemOptions, Stored


def test_a_scheduled_job_runs_with_its_arguments_and_fails_as_often_as_it_says(
    app: queueber.App, patient: str
) -> None:
    ran: list[tuple[str, int]] = []

    @app.job("resize", queue=patient, attempts=1)
    def resize(path: str, width: int) -> None:
        ran.append((path, width))
        raise ValueError("never")

    def plan(**options: Any) -> Stored:
        # The order of the arguments does not make it another one.
        return app.schedule(f"nightly-{patient}", "0 3 * * *", resize, **options)

    fox = {"path": "fox.jpg", "width": 100}
    assert plan(arguments=fox, zone="Europe/Berlin") == "created"
    assert plan(arguments=dict(reversed(fox.items())), zone="Europe/Berlin") == "unchanged"
    app.client.run_schedule(f"nightly-{patient}")
    stats = app.worker(progress=False).run(until="empty")

    assert (ran, stats.failed) == ([("fox.jpg", 100)], 1)
    assert app.client.queue(patient).stats().dead == 1
    assert plan(arguments=fox, attempts=3, backoff=[1, 2], timeout=5, expires=60) == "changed"
    found = app.client.describe_schedule(f"nightly-{patient}")
    assert found.options == ItemOptions(3, (1000, 2000), 0, 60_000)
    assert b'"timeout":5' in found.contents
    assert b'"own_backoff":true' in found.contents
    assert (found.zone, found.missed, found.priority) == ("UTC", "once", 5)


def test_the_job_that_follows_a_batch_fails_as_often_as_it_says(
    app: queueber.App, patient: str
) -> None:
    @app.job("report", queue=patient, attempts=1)
    def report() -> None:
        raise ValueError("never")

    @app.job("step", queue=patient)
    def step() -> None: ...

    for batch in ("b", "c"):
        app.enqueue(step, batch=batch)
    app.when_complete("b", report)
    app.when_complete("c", report, attempts=2, backoff=[0], expires=60)
    app.worker(progress=False).run(until="empty")

    dead = app.client.queue(patient).peek("dead").items
    reasons = sorted(item.reason for item in dead)
    assert reasons == ["failed 2 times (attempts_max)", "failed once (attempts_max)"]


def test_what_is_wrong_is_refused_before_anything_is_sent(app: queueber.App, name: str) -> None:
    @app.job("resize", queue=name)
    def resize(path: str, width: int) -> None: ...

    fox: Any = {"path": "fox.jpg", "width": 100}
    stranger: Any = queueber.App().job("resize")(lambda: None)
    wrong: list[tuple[Any, Any, str]] = [
        (stranger, {}, "job: .* is not a job of this app"),
        ("resize", {}, "job: 'resize' is not a job of this app"),
        (resize, [1], r"arguments: \[1\] is no mapping"),
        (resize, {"path": "fox.jpg"}, r"resize\(path, width\): missing"),
        (resize, {**fox, "width": "wide"}, "resize: width: expected `int`"),
        (resize, {**fox, "zone": "UTC"}, "unexpected keyword argument 'zone'"),
    ]
    for job, arguments, words in wrong:
        with pytest.raises(InvalidArgument, match=words):
            app.schedule("wrong", "@daily", job, arguments)
    with pytest.raises(InvalidArgument, match="when: 'soon' is no schedule"):
        app.schedule("wrong", "soon", resize, fox)

    assert "wrong" not in {each.name for each in app.client.schedules()}
