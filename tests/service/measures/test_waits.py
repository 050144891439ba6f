"""How long items had been ready when they were polled."""

from tests.support.service_rig import ServiceRig, on_service


@on_service()
async def test_wait_is_the_age_of_the_item_that_is_polled_first(rig: ServiceRig) -> None:
    waits = rig.service.polls.waits
    await rig.add(b"a", b"b")
    rig.clock.advance(3000)

    await rig.poll_now(1)

    assert waits.seconds.values == (3, 0, 0, 0, 0, 0, 0, 0, 1, *[0] * 6)
    assert waits.take() == {rig.queue.state: 3000}
    assert waits.take() == {}


@on_service()
async def test_delay_of_an_item_is_no_wait(rig: ServiceRig) -> None:
    await rig.add(b"a", delay_ms=5000)
    rig.clock.advance(6000)

    await rig.poll_now(1)

    assert rig.service.polls.waits.take() == {rig.queue.state: 1000}


@on_service()
async def test_some_polls_of_a_busy_queue_are_looked_at(rig: ServiceRig) -> None:
    await rig.add(*[b"x"] * 65)

    for _ in range(65):
        await rig.poll_now(1)

    assert rig.service.polls.waits.seconds.count == 3


@on_service()
async def test_poll_that_finds_nothing_is_no_wait(rig: ServiceRig) -> None:
    await rig.poll_now(1)

    assert rig.service.polls.waits.seconds.count == 0
