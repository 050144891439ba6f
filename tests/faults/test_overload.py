"""More load than the server can take: it goes on at its pace, and is itself again soon after."""

from contextlib import closing

import pytest

from faults.load import Load, Tally
from faults.overload import not_kept, quiet_ms, recovery_seconds, run, step
from queueber.testing import running_server


@pytest.mark.slow
def test_server_goes_on_at_its_pace_under_three_times_its_load() -> None:
    with running_server("--durability", "os") as server:
        usual_ms = quiet_ms(server.address)
        with closing(Load(server.address, 8, items=20, size=100)) as load:
            capacity = load.saturate(2.0).rate
            load.drain(10)
            tally = load.offer(3 * capacity, 3.0)
            recovered = recovery_seconds(server.address, usual_ms)
            load.drain(20)

            assert load.outstanding == 0
            assert not_kept(server.address, load) == ""

    assert tally.rate > 0.4 * capacity
    assert tally.failed == []
    assert recovered < 20


def test_step_tells_of_a_server_that_refuses_what_it_could_take() -> None:
    idle = Tally(10.0, offered=1000, refused=900, took=[0.01] * 100)

    assert step(2.0, idle, share=1.0, answered=0.1).wrong == "throughput fell"


def test_step_tells_of_refusals_that_are_no_sign_of_load() -> None:
    tally = Tally(1.0, offered=2, refused=1, failed=["INTERNAL: oh"], took=[0.01])

    assert step(2.0, tally, share=1.0, answered=1.0).wrong == ("1 failed, as with 'INTERNAL: oh'")


@pytest.mark.long
def test_overload_is_in_order() -> None:
    assert run(8.0)
