"""More load than the server can take: it goes on at its pace, and is itself again soon after."""

from contextlib import closing

import pytest

from faults.load import Load
from faults.overload import quiet_ms, recovery_seconds, run
from queueber.testing import running_server


def test_server_goes_on_at_its_pace_under_three_times_its_load() -> None:
    with running_server("--durability", "os") as server:
        usual_ms = quiet_ms(server.address)
        with closing(Load(server.address, 8, items=20, size=100)) as load:
            capacity = load.saturate(2.0).rate
            load.drain(10)
            tally = load.offer(3 * capacity, 3.0)
        recovered = recovery_seconds(server.address, usual_ms)

    assert tally.rate > 0.4 * capacity
    assert tally.refused + tally.held_back > 0
    assert recovered < 20


@pytest.mark.long
def test_overload_is_in_order() -> None:
    assert run(8.0)
