"""A pool at a real server, written down: the checker has nothing against it, and could have."""

from collections.abc import Iterator

import pytest

import queueber
from faults.checker import check
from faults.final_state import FinalState
from faults.history import History
from faults.observed import ObservedQueue, read_final_state
from faults.observed_pool import run_observed_pool
from faults.recorder import Recorder
from queueber.testing import running_server

QUEUE, POOL = "tasks", "pool"
SLOW = 0
"""Which task is at work until its lease was extended."""


@pytest.fixture(scope="module")
def worked() -> Iterator[tuple[History, FinalState]]:
    """What is written down while a pool does three tasks, and what is there after it."""
    recorder = Recorder()
    with running_server() as server, queueber.connect(server.address) as client:
        queue = client.queue(QUEUE)

        def handle(item: queueber.WorkItem) -> bytes:
            while item.contents == b"slow" and queue.stats().extended_total == 0:
                pass
            if item.contents == b"again" and item.attempt == 1:
                raise queueber.Retry("not now", delay=0.01)
            return item.contents.upper()

        ObservedQueue(queue, recorder, "producer").add([b"slow", b"again", b"good"])
        run_observed_pool(recorder, POOL, server.address, QUEUE, handle, lease=1.5, until="empty")
        yield recorder.history, read_final_state(queue)


def test_every_call_of_a_pool_is_written_down_with_its_answer(
    worked: tuple[History, FinalState],
) -> None:
    history, final = worked

    calls = [call for call in history.calls if call.client == POOL]
    assert {call.operation for call in calls} == {"poll", "extend", "complete", "fail"}
    assert all(call.is_ok for call in calls)
    assert sorted(found.result for found in final.results) == ["AGAIN", "GOOD", "SLOW"]
    assert check(history, {QUEUE: final}) == []


def test_lease_that_another_has_while_a_pool_is_at_work_is_found(
    worked: tuple[History, FinalState],
) -> None:
    """As if a second pool had been given the same items right after the first."""
    history, final = worked
    first = next(call for call in history.calls if call.operation == "poll" and call.answer["ids"])
    recorder = Recorder(now_ms=lambda: first.ended_ms)
    with recorder.call("another", "poll", QUEUE, **first.arguments) as call:
        call.answered(**{**first.answer, "lease": "another"})

    found = check(History([*history.calls, *recorder.history.calls]), {QUEUE: final})

    slow = first.answer["ids"][SLOW]
    assert {each.rule for each in found if each.item == slow} == {
        "deliveries", "overlap", "stale lease",
    }  # fmt: skip
