"""Calls of a real server, written down: the checker finds nothing wrong with them."""

from collections.abc import Iterator

import pytest

import queueber
from faults.checker import check
from faults.history import Outcome
from faults.observed import ObservedQueue, read_final_state
from faults.recorder import Recorder
from queueber.model import ItemState
from queueber.testing import running_server

QUEUE = "observed"


@pytest.fixture(scope="module")
def client() -> Iterator[queueber.Client]:
    with running_server() as server, queueber.connect(server.address) as connected:
        yield connected


def test_every_call_is_written_down_and_fits_what_is_there_at_the_end(
    client: queueber.Client,
) -> None:
    recorder, real = Recorder(), client.queue(QUEUE)
    queue = ObservedQueue(real, recorder, "test")

    ids = queue.add([b"%d" % n for n in range(8)], batch="b")
    assert queue.add([b"0", b"1"], keys=["k", "k"])[0] not in ids
    queue.add([b"later"], delay=3600)
    lease = queue.poll(7, lease=60)
    assert queue.extend(lease.id, 60)
    assert queue.remove(lease.ids[:1], lease.id) == [True]
    assert queue.complete({lease.ids[1]: b"done"}, lease.id) == [True]
    assert queue.fail(lease.ids[2:3], lease.id, delay=3600) == [queueber.FailOutcome.RETRIED]
    assert queue.release(lease.ids[3:4], lease.id) == [True]
    assert queue.cancel(lease.ids[4:5]) == [True]
    assert queue.reschedule(lease.ids[3:5], 3600) == [True, False]
    assert queue.purge(ItemState.LEASED) == 2
    assert queue.redrive() == 0
    queue.pause(3600)
    assert not queue.poll(1, lease=60)
    queue.resume()
    assert queue.receipt("b").live == 3
    assert len(queue.read_results().results) == 1
    queue.ack_results("r", 1)

    final = read_final_state(real, ["b", "another"])
    made = {call.operation for call in recorder.history.calls}
    assert made == {
        "add", "poll", "extend", "remove", "complete", "fail", "release", "cancel", "purge",
        "reschedule",
        "redrive", "pause", "resume", "receipt", "read_results", "ack_results",
    }  # fmt: skip
    assert check(recorder.history, {QUEUE: final}) == []
    assert len(final.items) == 5
    assert list(final.receipts) == ["b"]


def test_call_that_the_server_refuses_is_written_down_as_refused(client: queueber.Client) -> None:
    recorder = Recorder()
    queue = ObservedQueue(client.queue(QUEUE), recorder, "test")

    with pytest.raises(queueber.NotFound):
        queue.receipt("nobody's")

    assert [call.outcome for call in recorder.history.calls] == [Outcome.REFUSED]
