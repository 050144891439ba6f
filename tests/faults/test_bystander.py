"""A client beside: it uses the queue in every way, and its history is judged."""

import time

import pytest

import queueber
from faults.bystander import QUEUE, Bystander
from queueber.testing import running_server


def wait_for(bystander: Bystander, calls: int) -> None:
    give_up_at = time.monotonic() + 30
    while bystander.calls < calls:
        assert time.monotonic() < give_up_at
        time.sleep(0.02)


def test_bystander_of_a_server_that_is_in_order_has_nothing_to_say() -> None:
    with running_server() as server, Bystander(server.address) as bystander:
        wait_for(bystander, 15)

    assert bystander.wrong == []


def test_bystander_tells_of_an_item_that_is_lost() -> None:
    with running_server() as server, Bystander(server.address) as bystander:
        wait_for(bystander, 8)
        with queueber.connect(server.address) as client:
            queue = client.queue(QUEUE)
            while not (lost := queue.poll(1, lease=60, wait=5)):
                pass
            assert queue.remove(lost.ids, lease=lost.id) == [True]

    assert any("lost" in each for each in bystander.wrong)


def test_bystander_judges_nothing_when_what_it_stands_beside_fails() -> None:
    with (
        running_server() as server,
        pytest.raises(ZeroDivisionError),
        Bystander(server.address) as bystander,
    ):
        raise ZeroDivisionError

    assert bystander.wrong == []
