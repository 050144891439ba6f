"""The clock of a test's server is moved: all that depends on time happens without waiting."""

import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import queueber
from queueber.errors import InvalidArgument
from queueber.testing import ServerProcess, running_server
from queueber.testing.clock_link import ADVANCE_MS_MAX
from queueber.testing.clock_server import MovableClock

pytestmark = pytest.mark.slow


def test_a_delayed_item_is_ready_when_its_time_has_come(
    moved: ServerProcess, client: queueber.Client
) -> None:
    queue = client.queue("later")
    queue.add(b"in three hours", delay=3 * 3600)

    moved.advance(hours=2, minutes=59)
    before = queue.stats().ready, queue.poll(1).ids
    moved.advance(minutes=1)

    assert before == (0, [])
    assert queue.stats().ready == 1
    assert [item.contents for item in queue.poll(1)] == [b"in three hours"]


def test_a_waiting_poll_gets_what_a_move_makes_ready(
    moved: ServerProcess, client: queueber.Client
) -> None:
    queue = client.queue("awaited")
    queue.add(b"tomorrow", delay=24 * 3600)
    got: list[bytes] = []
    with queueber.connect(moved.address) as other:
        polling = threading.Thread(
            target=lambda: got.extend(i.contents for i in other.queue("awaited").poll(1, wait=60))
        )
        polling.start()
        while queue.stats().waiting_polls == 0:
            pass
        moved.advance(days=1)
        polling.join(30)

    assert got == [b"tomorrow"]


def test_a_lease_expires_and_a_late_worker_is_refused(
    moved: ServerProcess, client: queueber.Client
) -> None:
    client.create_queue("leased", backoff=[0])
    queue = client.queue("leased")
    queue.add(b"a")
    lease = queue.poll(1, lease=600)

    moved.advance(minutes=11)

    assert lease.complete({lease.ids[0]: b"late"}) == [False]
    assert [item.attempt for item in queue.poll(1)] == [2]


def test_a_failed_item_comes_back_after_its_pause(
    moved: ServerProcess, client: queueber.Client
) -> None:
    client.create_queue("paused", backoff=[1800])
    queue = client.queue("paused")
    queue.add(b"a")
    queue.poll(1).fail("busy")

    early = queue.poll(1).ids
    moved.advance(minutes=31)

    assert early == []
    assert [item.attempt for item in queue.poll(1)] == [2]


def test_a_schedule_fires_at_its_time_of_the_moved_clock(
    moved: ServerProcess, client: queueber.Client
) -> None:
    queue = client.queue("nightly")
    client.schedule("at-three", "0 3 * * *", zone="Europe/Berlin", queue="nightly", contents=b"go")

    moved.advance(days=1)

    assert queue.stats().ready == 1
    [item] = queue.poll(1)
    assert item.added_at is not None
    assert abs(item.added_at - moved.now()) < timedelta(days=1, minutes=1)
    client.remove_schedule("at-three")


def test_a_capped_queue_gives_more_when_time_has_passed(
    moved: ServerProcess, client: queueber.Client
) -> None:
    client.create_queue("capped", rate=(1, 3600))
    queue = client.queue("capped")
    queue.add([b"a", b"b"])
    first, second = queue.poll(2), queue.poll(2)

    moved.advance(hours=1)

    assert (len(first), len(second)) == (1, 0)
    assert len(queue.poll(2)) == 1


def test_results_are_forgotten_at_their_age(moved: ServerProcess, client: queueber.Client) -> None:
    client.create_queue("kept", result_age=timedelta(days=7))
    queue = client.queue("kept")
    queue.add(b"a")
    lease = queue.poll(1)
    lease.complete({lease.ids[0]: b"done"})
    before = len(list(queue.results()))

    moved.advance(days=8)

    assert (before, list(queue.results())) == (1, [])


def test_dead_letters_are_dropped_at_their_age(
    moved: ServerProcess, client: queueber.Client
) -> None:
    client.create_queue("aged", attempts_max=1, dead_age=timedelta(days=5))
    queue = client.queue("aged")
    queue.add(b"doomed", batch="b")
    queue.poll().fail("cannot be done")

    moved.advance(days=4)
    before = queue.stats()
    moved.advance(days=2)
    after, receipt = queue.stats(), queue.receipt("b")

    assert (before.dead, before.dead_dropped_total) == (1, 0)
    assert (after.dead, after.dead_dropped_total, after.died_total) == (0, 1, 1)
    assert (receipt.dead, receipt.live, receipt.complete) == (1, 0, True)


def test_a_restart_keeps_the_time(tmp_path: Path) -> None:
    with running_server(data_dir=tmp_path / "data", movable_clock=True) as server:
        shown = server.advance(days=2)
        server.kill()
        server.start()
        with queueber.connect(server.address) as client:
            client.queue().add(b"a")
            [item] = client.queue().poll(1)

    assert item.added_at is not None
    assert timedelta() <= item.added_at - shown < timedelta(minutes=1)


def test_what_was_added_to_the_clock_is_told(moved: ServerProcess) -> None:
    before = moved.advanced_ms

    shown = moved.advance(days=1, hours=2, minutes=3, seconds=4)

    assert moved.advanced_ms - before == ((26 * 60 + 3) * 60 + 4) * 1000
    expected = datetime.now(UTC) + timedelta(milliseconds=moved.advanced_ms)
    assert abs(shown - expected) < timedelta(seconds=10)


@pytest.mark.parametrize(
    "length",
    [
        {"days": -1},
        {"seconds": -0.001},
        {"days": 3651},
        {"days": float("nan")},
        {"days": 1e300},
        {"hours": "one"},
    ],
)
def test_a_clock_moves_forward_and_not_without_end(
    moved: ServerProcess, length: dict[str, Any]
) -> None:
    before = moved.advanced_ms

    with pytest.raises(InvalidArgument, match=r"^advance: "):
        moved.advance(**length)

    assert moved.advanced_ms == before


def test_the_clock_of_another_server_cannot_be_moved() -> None:
    with running_server() as server, pytest.raises(RuntimeError, match="movable_clock=True"):
        server.advance(seconds=1)


def test_a_server_that_has_ended_says_so() -> None:
    with running_server(movable_clock=True) as server:
        assert server.process is not None
        server.process.kill()
        with pytest.raises(RuntimeError, match="does not answer"):
            server.advance(seconds=1)


def test_other_machines_are_not_served(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ended = subprocess.run(
            [
                sys.executable, "-m", "queueber.testing.clock_server",
                "--clock-fd", str(theirs.fileno()), "--insecure",
                "--listen", "0.0.0.0:0", "--data-dir", str(tmp_path / "data"),
            ],
            pass_fds=(theirs.fileno(),), capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    assert (ended.returncode, (tmp_path / "data").exists()) == (2, False)
    assert "0.0.0.0:0 is not an address of this machine alone" in ended.stderr


def test_a_server_has_no_flag_for_another_clock() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "queueber", "serve", "--clock-fd", "3"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert (told.returncode, "No such option" in told.stderr) == (2, True)


def test_a_clock_never_goes_back() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        clock = MovableClock(theirs, advanced_ms=1000)
        for ms in (-1, ADVANCE_MS_MAX - 999):
            with pytest.raises(InvalidArgument, match=r"^advance: "):
                clock.advance(ms)
        clock.advance(ADVANCE_MS_MAX - 1000)
