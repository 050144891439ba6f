"""A client that knows only the original schema, run as a program of its own.

It loads no module of Queueber: two schemas with one file id cannot live in one process, and an old
client has no other. Prints `ok` at the end; any failed expectation ends it with a traceback.
"""

import asyncio
import sys
import time
import uuid
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any

import capnp

schema: Any = capnp.load(str(Path(__file__).with_name("original.capnp")))

MIB = 1024 * 1024


def expect(condition: bool, what: object) -> None:
    if not condition:
        raise AssertionError(what)


async def refused(call: Any, code: str) -> None:
    try:
        await call
    except capnp.KjException as error:
        text = error.description.removeprefix("remote exception: ")
        expect(text.startswith(f"{code}: "), f"wanted {code}, got {text}")
        expect("Traceback" not in text, text)
    else:
        raise AssertionError(f"not refused with {code}")


async def add(queue: Any, *contents: bytes, delay_secs: int = 0) -> list[bytes]:
    items = [{"contents": each, "visibilityTimeoutSecs": delay_secs} for each in contents]
    return list((await queue.add(req={"items": items})).resp.ids)


async def poll(queue: Any, count: int = 1, *, lease_secs: int = 30, timeout_secs: int = 1) -> Any:
    request = {
        "leaseValiditySecs": lease_secs, "numItems": count, "timeoutSecs": timeout_secs,
    }  # fmt: skip
    return (await queue.poll(req=request)).resp


async def remove(queue: Any, item_id: bytes, lease: bytes) -> bool:
    return bool((await queue.remove(req={"id": item_id, "lease": lease})).resp.removed)


async def gather(calls: Iterable[Coroutine[Any, Any, bool]]) -> list[bool]:
    """Send all of them before any is answered."""
    return await asyncio.gather(*calls)


async def extend(queue: Any, lease: bytes, lease_secs: int) -> bool:
    request = {"lease": lease, "leaseValiditySecs": lease_secs}
    return bool((await queue.extend(req=request)).resp.extended)


async def adds_and_polls_in_order(queue: Any) -> None:
    ids = await add(queue, b"one", b"two", b"three")

    expect(len(set(ids)) == 3 and ids == sorted(ids), ids)
    expect(all(uuid.UUID(bytes=each).version == 7 for each in ids), ids)
    got = await poll(queue, 2)
    expect([(i.contents, i.id) for i in got.items] == [(b"one", ids[0]), (b"two", ids[1])], got)
    expect(len(got.lease) == 16, got)
    third = await poll(queue, 0)
    expect([i.contents for i in third.items] == [b"three"], "numItems 0 means 1")
    expect(third.lease != got.lease, "a new lease for each poll")

    expect(await remove(queue, ids[0], got.lease), "held by its lease")
    expect(not await remove(queue, ids[0], got.lease), "gone already")
    expect(not await remove(queue, ids[2], got.lease), "held by another lease")
    expect(await remove(queue, ids[1], got.lease), "still held")
    expect(await remove(queue, ids[2], third.lease), "untouched by the refusal")


async def empty_poll_waits_and_ends(queue: Any) -> None:
    started = time.monotonic()

    nothing = await poll(queue, 5, timeout_secs=1)

    waited = time.monotonic() - started
    expect(len(nothing.items) == 0 and nothing.lease == b"", nothing)
    expect(1.0 <= waited < 2.0, waited)


async def waiting_poll_wakes(queue: Any) -> None:
    """On an add, on a delay that ends, on a lease that runs out; with timeout 0 too."""
    waiting = asyncio.ensure_future(asyncio.wait_for(poll(queue, timeout_secs=0), 20))
    await asyncio.sleep(0.05)
    added_at = time.monotonic()
    await add(queue, b"wakes")
    got = await waiting
    expect(time.monotonic() - added_at < 0.5, "woken late by an add")
    expect(await remove(queue, got.items[0].id, got.lease), got)

    added_at = time.monotonic()
    await add(queue, b"later", delay_secs=1)
    got = await poll(queue, lease_secs=1, timeout_secs=0)
    elapsed = time.monotonic() - added_at
    expect(1.0 <= elapsed < 1.5, f"a delay of one second took {elapsed}")

    leased_at = time.monotonic()
    again = await poll(queue, timeout_secs=10)
    elapsed = time.monotonic() - leased_at
    expect([i.id for i in again.items] == [got.items[0].id], again)
    expect(0.9 <= elapsed < 1.5, f"a lease of one second took {elapsed}")
    expect(not await remove(queue, again.items[0].id, got.lease), "the old lease is over")
    expect(not await extend(queue, got.lease, 10), "the old lease is over")
    expect(await remove(queue, again.items[0].id, again.lease), again)


async def extended_lease_lasts(queue: Any) -> None:
    await add(queue, b"long work")
    got = await poll(queue, lease_secs=1)

    expect(await extend(queue, got.lease, 30), "alive")
    expect(not await extend(queue, bytes(16), 30), "never given")

    nothing = await poll(queue, timeout_secs=2)
    expect(len(nothing.items) == 0, "the lease was extended past its first expiry")
    expect(await remove(queue, got.items[0].id, got.lease), "still held")


async def bad_input_is_refused(queue: Any) -> None:
    await refused(poll(queue, lease_secs=8 * 24 * 3600), "INVALID_ARGUMENT")
    await refused(remove(queue, bytes(16), b""), "INVALID_ARGUMENT")
    await refused(extend(queue, bytes(17), 1), "INVALID_ARGUMENT")
    await refused(extend(queue, bytes(16), 0), "INVALID_ARGUMENT")
    await refused(add(queue, b"x", delay_secs=(1 << 64) - 1), "INVALID_ARGUMENT")
    await refused(add(queue, bytes(4 * MIB + 1)), "RESOURCE_EXHAUSTED")
    await refused(add(queue, b"small", *[bytes(3 * MIB)] * 12), "RESOURCE_EXHAUSTED")
    nothing = await poll(queue)
    expect(len(nothing.items) == 0, "a refused call stored something")


async def what_the_original_answered_is_answered(queue: Any) -> None:
    expect(await add(queue) == [], "no items, no ids")
    ids = await add(queue, *[b"x"] * 1100)
    got = await poll(queue, 1_000_000)
    expect([i.id for i in got.items] == ids[:1000], "as many as the server allows")
    expect(not await remove(queue, b"short", got.lease), "no item has such an id")
    expect(not await remove(queue, ids[0] + b"x", got.lease), "no item has such an id")
    rest = await poll(queue, 1_000_000)
    for polled in (got, rest):
        expect(all(await gather(remove(queue, i.id, polled.lease) for i in polled.items)), "held")


async def many_removes_in_flight_are_all_answered(queue: Any) -> None:
    """One connection's calls are held back, and not refused."""
    held = []
    for _ in range(4):
        await add(queue, *[b"x"] * 1000)
        got = await poll(queue, 1000, lease_secs=120)
        held += [(i.id, got.lease) for i in got.items]

    removed = await gather(remove(queue, *each) for each in held)

    expect(removed == [True] * 4000, f"{removed.count(True)} of 4000 were removed")


async def large_items_come_in_bounded_answers(queue: Any) -> None:
    for number in range(12):
        await add(queue, bytes([number]) * (4 * MIB))
    seen = []
    while True:
        got = await poll(queue, 100)
        if not len(got.items):
            break
        expect(sum(len(i.contents) for i in got.items) < 32 * MIB, "an answer over the limit")
        for item in got.items:
            seen.append(item.contents[0])
            expect(await remove(queue, item.id, got.lease), item.id.hex())
    expect(seen == list(range(12)), seen)


async def main(host: str, port: str) -> None:
    async with capnp.kj_loop():
        stream = await capnp.AsyncIoStream.create_connection(host, int(port))
        client = capnp.TwoPartyClient(stream)
        queue = client.bootstrap().cast_as(schema.Queue)
        for scenario in (
            adds_and_polls_in_order,
            empty_poll_waits_and_ends,
            waiting_poll_wakes,
            extended_lease_lasts,
            bad_input_is_refused,
            what_the_original_answered_is_answered,
            many_removes_in_flight_are_all_answered,
            large_items_come_in_bounded_answers,
        ):
            await scenario(queue)
            sys.stdout.write(f"{scenario.__name__}\n")
    sys.stdout.write("ok\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1].split(":")))
