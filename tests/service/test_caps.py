"""Caps of a queue: whoever waits is served as soon as they allow it."""

from queueber.limits import SECOND_MS
from queueber.model import NOTHING_POLLED, NewItems, QueueSettings
from tests.support.service_rig import ServiceRig, on_service
from tests.support.virtual_loop import turns


async def set_caps(rig: ServiceRig, concurrency_max: int = 0, rate: int = 0) -> None:
    settings = QueueSettings(concurrency_max=concurrency_max, rate_items=rate, rate_ms=SECOND_MS)
    await rig.service.queues.configure_queue("default", settings, rig.session)


@on_service()
async def test_a_waiting_poll_is_served_when_a_lease_ends(rig: ServiceRig) -> None:
    await set_caps(rig, concurrency_max=1)
    await rig.add(b"a", b"b")
    first = await rig.poll_now()
    task = await rig.waiting_poll()

    await rig.complete(first)

    assert (await task).contents == [b"b"]


@on_service()
async def test_many_waiting_polls_share_what_the_cap_allows(rig: ServiceRig) -> None:
    await set_caps(rig, concurrency_max=2)
    tasks = [await rig.waiting_poll() for _ in range(3)]

    await rig.add(b"a", b"b", b"c")
    await turns(5)

    assert [task.done() for task in tasks] == [True, True, False]
    await rig.complete(await tasks[0])
    assert (await tasks[2]).contents == [b"c"]


@on_service()
async def test_a_cap_that_is_raised_serves_who_waits(rig: ServiceRig) -> None:
    await set_caps(rig, concurrency_max=1)
    await rig.add(b"a", b"b")
    await rig.poll_now()
    task = await rig.waiting_poll()

    await set_caps(rig, concurrency_max=2)

    assert (await task).contents == [b"b"]


@on_service()
async def test_a_waiting_poll_is_served_when_the_rate_allows_it(rig: ServiceRig) -> None:
    await set_caps(rig, rate=4)
    await rig.add(*[b"x"] * 5)
    for _ in range(4):
        await rig.poll_now()
    began_ms = rig.clock.now_ms()
    async with rig.sweeper():
        polled = await rig.begin_poll(wait_ms=10 * SECOND_MS)

    assert polled.contents == [b"x"]
    assert rig.clock.now_ms() == began_ms + SECOND_MS // 4


@on_service()
async def test_a_waiting_poll_is_served_when_a_token_of_a_key_is_back(rig: ServiceRig) -> None:
    settings = QueueSettings(cap_by="who", cap_by_rate_items=4, cap_by_rate_ms=SECOND_MS)
    await rig.service.queues.configure_queue("default", settings, rig.session)
    items = NewItems([b"x"] * 6, attributes=[{"who": "ann"}] * 6)
    await rig.service.items.add(rig.queue, items)
    for _ in range(4):
        await rig.poll_now()
    began_ms = rig.clock.now_ms()
    async with rig.sweeper():
        polled = [await rig.begin_poll(wait_ms=10 * SECOND_MS) for _ in range(2)]

    assert [each.contents for each in polled] == [[b"x"], [b"x"]]
    assert rig.clock.now_ms() == began_ms + SECOND_MS // 2


@on_service()
async def test_polls_that_do_not_wait_are_told_at_once(rig: ServiceRig) -> None:
    await set_caps(rig, concurrency_max=1)
    await rig.add(b"a", b"b")

    polled = await rig.service.polls.poll_many(rig.queue, [1, 1], lease_ms=1000)

    assert [each.count for each in polled] == [1, 0]
    assert await rig.poll_now() == NOTHING_POLLED
