"""Results and the counters of chords, without workers."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from celery.exceptions import TimeoutError as CeleryTimeoutError

import queueber
from queueber.testing import ServerProcess


@pytest.fixture
def backend(server: ServerProcess) -> Iterator[Any]:
    app = Celery(
        broker_url=f"queueber://{server.address}",
        result_backend=f"queueber://{server.address}",
        set_as_current=False,
    )
    yield app.backend
    app.backend.close()


def test_result_is_stored_read_and_forgotten(backend: Any) -> None:
    assert backend.get_state("t1") == "PENDING"
    backend.store_result("t1", None, "STARTED")
    backend.store_result("t1", {"n": 1}, "SUCCESS")

    assert backend.get_state("t1") == "SUCCESS"
    assert backend.get_result("t1") == {"n": 1}
    backend.forget("t1")
    assert backend.get_state("t1") == "PENDING"


def test_success_is_final(backend: Any) -> None:
    """A task that was delivered twice may end a second time, and worse."""
    backend.store_result("t2", 1, "SUCCESS")
    backend.store_result("t2", ValueError("late"), "FAILURE")
    assert backend.get_result("t2") == 1


def test_result_expires_in_the_server(backend: Any, server: ServerProcess) -> None:
    backend.store_result("t3", 1, "SUCCESS")
    with queueber.connect(server.address) as client:
        info = client.describe_topic("celery-task-meta-t3")
    assert info.config.settings.ttl_ms == backend.expires * 1000


def test_waiting_ends_with_the_result(backend: Any) -> None:
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(backend.wait_for("t4", timeout=30)))
    waiting.start()
    backend.store_result("t4", None, "STARTED")
    backend.store_result("t4", 17, "SUCCESS")
    waiting.join(30)
    assert [each["result"] for each in found] == [17]


def test_waiting_gives_up_in_time(backend: Any) -> None:
    with pytest.raises(CeleryTimeoutError):
        backend.wait_for("t5", timeout=0.2)


def part(backend: Any, chord: str, name: str) -> int:
    backend._local.part = name
    return int(backend.incr(backend.get_key_for_chord(chord)))


def test_parts_of_a_chord_are_counted_once_each(backend: Any) -> None:
    assert [part(backend, "c1", name) for name in "abc"] == [1, 2, 3]
    assert [part(backend, "c1", name) for name in "bc"] == [2, 3]


def test_parts_that_end_together_have_different_numbers(backend: Any) -> None:
    numbers: list[int] = []
    threads = [
        threading.Thread(target=lambda n=n: numbers.append(part(backend, "c2", f"part-{n}")))
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(numbers) == list(range(1, 21))


def test_part_that_is_run_again_after_its_chord_changes_nothing(backend: Any) -> None:
    part(backend, "c3", "a")
    backend.delete(backend.get_key_for_chord("c3"))
    request = SimpleNamespace(group="c3", id="a", chord={"chord_size": 1})

    backend.on_chord_part_return(request, "SUCCESS", 1)  # else: the group no longer exists

    assert backend.get(backend.get_key_for_chord("c3")) == b"done"
