"""A worker pool that records every call about items."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from faults import records
from faults.recorder import Recorder
from queueber.client import AsyncLease, AsyncQueue
from queueber.model import FailOutcome
from queueber.worker.pool.in_process import run_loop
from queueber.worker.pool.pool import Pool
from queueber.worker.progress import make_event_logger
from queueber.worker.worker_settings import Handler, Until, WorkerSettings


class ObservedWorkQueue:
    """The queue as a pool calls it, with a recorder in between. Durations are seconds."""

    def __init__(self, recorder: Recorder, client: str, queue: AsyncQueue) -> None:
        self._recorder = recorder
        self._client = client
        self._queue = queue

    @property
    def name(self) -> str:
        return self._queue.name

    def _call(self, operation: str, **arguments: Any) -> Any:
        return self._recorder.call(self._client, operation, self.name, **arguments)

    async def poll(
        self, count: int, /, *, lease: float, wait: float, release_on_disconnect: bool
    ) -> AsyncLease:
        with self._call("poll", lease_ms=lease * 1000, bound=release_on_disconnect) as call:
            found = await self._queue.poll(
                count, lease=lease, wait=wait, release_on_disconnect=release_on_disconnect
            )
            contents = [item.contents for item in found]
            deliveries = [item.deliveries for item in found]
            call.answered(**records.polled(found.id, found.ids, contents, deliveries))
        return found

    async def extend(self, seconds: float, /, *, lease: bytes) -> bool:
        with self._call("extend", leases=[lease.hex()], leases_ms=[seconds * 1000]) as call:
            is_done = await self._queue.extend(seconds, lease=lease)
            call.answered(**records.done([is_done]))
        return is_done

    async def complete(
        self, ids: Sequence[bytes], results: Sequence[bytes], /, *, lease: bytes
    ) -> list[bool]:
        printed = records.all_printed(results)
        with self._call("complete", **records.under_lease(ids, lease), results=printed) as call:
            found = await self._queue.complete(ids, results, lease=lease)
            call.answered(**records.done(found))
        return found

    async def fail(
        self, ids: Sequence[bytes], error: Sequence[str], /, *, lease: bytes, delay: float | None
    ) -> list[FailOutcome]:
        delays_ms = [-1 if delay is None else delay * 1000] * len(ids)
        with self._call("fail", **records.under_lease(ids, lease), delays_ms=delays_ms) as call:
            found = await self._queue.fail(ids, error, lease=lease, delay=delay)
            call.answered(**records.outcomes(found))
        return found

    async def release(self, ids: Sequence[bytes], /, *, lease: bytes) -> list[bool]:
        with self._call("release", **records.under_lease(ids, lease)) as call:
            found = await self._queue.release(ids, lease=lease)
            call.answered(**records.done(found))
        return found


def run_observed_pool(
    recorder: Recorder,
    client: str,
    address: str,
    queue: str,
    handler: Handler,
    *,
    lease: float,
    until: Until | None = None,
) -> None:
    """Run a pool as a `Worker` without processes does, but without signal handling.

    Its leases end with its connection, so a test that kills it records that `client` disconnects.
    """
    settings = WorkerSettings(
        address=address,
        queue=queue,
        handler=handler,
        concurrency=8,
        processes=0,
        prefetch=8,
        lease_seconds=lease,
        shutdown_seconds=30,
        connect_seconds=60,
        loop="asyncio",
        serializer=None,
        deserializer=None,
        on_lease_lost=None,
        until=until,
    )
    wrap_queue = partial(ObservedWorkQueue, recorder, client)
    pool = Pool(settings, make_event_logger(), wrap_queue=wrap_queue)
    run_loop(asyncio.new_event_loop(), pool.run())
