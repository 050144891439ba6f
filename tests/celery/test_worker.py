"""Celery's own canvas, with a real worker and a real server; and workers that are killed."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import chain, chord, group
from celery.exceptions import ChordError

import queueber
from queueber.testing import ServerProcess
from tests.celery.conftest import StartWorker, Worker, a_worker, end

pytestmark = pytest.mark.slow

PATIENCE = 60.0


@pytest.fixture(scope="module")
def worker(
    server: ServerProcess, project: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Worker]:
    folder = tmp_path_factory.mktemp("worker")
    with a_worker(server, folder / "log", "-c", "2", "-n", "canvas@%h") as started:
        yield started


def wait_until(condition: Any) -> None:
    give_up_at = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


@pytest.mark.usefixtures("worker")
class TestCanvas:
    def test_chain_passes_results_on(self, project: Any) -> None:
        asked = chain(project.add.s(2, 2), project.mul.s(4), project.add.s(1))
        assert asked().get(timeout=PATIENCE) == 17

    def test_group_gathers_results_in_order(self, project: Any) -> None:
        asked = group(project.add.s(i, i) for i in range(20))
        assert asked().get(timeout=PATIENCE) == [2 * i for i in range(20)]

    def test_chord_calls_its_body_once_with_all_results(self, project: Any) -> None:
        asked = chord((project.add.s(i, i) for i in range(20)), project.total.s())
        assert asked().get(timeout=PATIENCE) == 380

    def test_chord_of_one_part(self, project: Any) -> None:
        assert chord([project.add.s(1, 2)], project.total.s())().get(timeout=PATIENCE) == 3

    def test_chord_in_a_chain_and_a_group_in_a_chord(self, project: Any) -> None:
        asked = chain(
            group(project.add.s(1, 1), project.add.s(2, 2)), project.total.s(), project.mul.s(10)
        )
        assert asked().get(timeout=PATIENCE) == 60

    def test_chord_with_a_part_that_fails_fails(self, project: Any) -> None:
        asked = chord([project.add.s(1, 1), project.fail.s("no luck")], project.total.s())()
        asked.parent = None  # else the error is that of the part
        with pytest.raises(ChordError, match="no luck"):
            asked.get(timeout=PATIENCE)

    def test_map_and_starmap(self, project: Any) -> None:
        pairs = [(1, 2), (3, 4)]
        assert project.total.map([[1, 2], [3]]).delay().get(timeout=PATIENCE) == [3, 3]
        assert project.add.starmap(pairs).delay().get(timeout=PATIENCE) == [3, 7]

    def test_chunks(self, project: Any) -> None:
        chunks = project.add.chunks(zip(range(6), range(6), strict=True), 3)
        assert chunks().get(timeout=PATIENCE) == [[0, 2, 4], [6, 8, 10]]

    def test_task_that_fails_raises_at_the_caller(self, project: Any) -> None:
        with pytest.raises(ValueError, match="no luck"):
            project.fail.delay("no luck").get(timeout=PATIENCE)

    def test_task_is_retried(self, project: Any) -> None:
        assert project.third_time.delay().get(timeout=PATIENCE) == 2

    def test_countdown_waits_in_the_server(self, server: ServerProcess, project: Any) -> None:
        began = time.monotonic()
        asked = project.add.apply_async((1, 2), countdown=1.5)
        with queueber.connect(server.address) as client:
            assert client.queue("celery").stats().delayed == 1
        assert asked.get(timeout=PATIENCE) == 3
        assert time.monotonic() - began >= 1.5

    def test_link_calls_the_next_task(self, project: Any) -> None:
        asked = project.add.apply_async((1, 2), link=project.mul.s(5))
        asked.get(timeout=PATIENCE)
        assert asked.children[0].get(timeout=PATIENCE) == 15

    def test_remote_control_reaches_the_worker_and_answers(self, project: Any) -> None:
        project.add.delay(1, 2).get(timeout=PATIENCE)  # then it is up
        [answer] = project.app.control.ping(timeout=5)
        assert list(answer.values()) == [{"ok": "pong"}]

    def test_forgotten_result_is_gone(self, project: Any) -> None:
        asked = project.add.delay(1, 2)
        asked.get(timeout=PATIENCE)
        asked.forget()
        assert project.app.AsyncResult(asked.id).state == "PENDING"


@pytest.mark.recovery
def test_worker_that_is_killed_loses_nothing(
    project: Any, server: ServerProcess, start_worker: StartWorker, tmp_path: Path
) -> None:
    names = [f"task-{number}" for number in range(6)]
    first = start_worker("-c", "2", "-Q", "killed")
    asked = [project.slow.apply_async((str(tmp_path), name, 1.0), queue="killed") for name in names]
    wait_until((tmp_path / names[0]).exists)

    end(first, signal.SIGKILL)
    ended = [name for name in names if "end" in _lines(tmp_path / name)]
    start_worker("-c", "2", "-Q", "killed")

    assert len(ended) < len(names)
    assert [each.get(timeout=PATIENCE) for each in asked] == names
    assert "end" in _lines(tmp_path / names[0])
    assert len(_lines(tmp_path / names[0])) >= 3 or names[0] in ended
    with queueber.connect(server.address) as client:
        stats = client.queue("killed").stats()
        wait_until(lambda: client.queue("killed").stats().leased == 0)
        assert (stats.ready, stats.delayed, stats.dead) == (0, 0, 0)


def test_worker_stops_when_its_tasks_are_done(
    project: Any, start_worker: StartWorker, tmp_path: Path
) -> None:
    worker = start_worker("-c", "1", "-Q", "stopped")
    asked = project.slow.apply_async((str(tmp_path), "last", 2.0), queue="stopped")
    wait_until((tmp_path / "last").exists)

    assert end(worker, signal.SIGTERM) == 0
    assert asked.get(timeout=5) == "last"
    assert _lines(tmp_path / "last") == ["begin", "end"]


def _lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []
