"""A queue of a real server that records every call."""

from collections.abc import Mapping, Sequence
from typing import Any

import queueber
from faults import records
from faults.final_state import FinalState
from faults.recorder import Recorder
from queueber.model import FailOutcome, ItemState, Receipt, Results


class ObservedQueue:
    """As `queueber.Queue`, for one client. Durations are seconds."""

    def __init__(self, queue: queueber.Queue, recorder: Recorder, client: str) -> None:
        self._queue = queue
        self._recorder = recorder
        self._client = client

    def _call(self, operation: str, **arguments: Any) -> Any:
        return self._recorder.call(self._client, operation, self._queue.name, **arguments)

    def add(
        self,
        contents: Sequence[bytes],
        *,
        delay: float = 0,
        keys: Sequence[str] = (),
        attributes: Sequence[Mapping[str, str]] = (),
        batch: str = "",
    ) -> list[bytes]:
        with self._call(
            "add",
            contents=records.all_printed(contents),
            keys=list(keys),
            delays_ms=[delay * 1000] * len(contents),
            batch=batch,
        ) as call:
            ids = self._queue.add(
                contents,
                delay=delay,
                key=list(keys) or None,
                attributes=list(attributes) or None,
                batch=batch or None,
            )
            call.answered(**records.added(ids, ids.duplicates))
        return ids

    def poll(self, count: int, *, lease: float, wait: float = 0) -> queueber.Lease:
        with self._call("poll", lease_ms=lease * 1000) as call:
            found = self._queue.poll(count, lease=lease, wait=wait)
            contents = [item.contents for item in found]
            deliveries = [item.deliveries for item in found]
            call.answered(**records.polled(found.id, found.ids, contents, deliveries))
        return found

    def extend(self, lease: bytes, seconds: float) -> bool:
        with self._call("extend", leases=[lease.hex()], leases_ms=[seconds * 1000]) as call:
            is_done = self._queue.extend(seconds, lease=lease)
            call.answered(**records.done([is_done]))
        return is_done

    def remove(self, ids: Sequence[bytes], lease: bytes) -> list[bool]:
        with self._call("remove", **records.under_lease(ids, lease)) as call:
            found = self._queue.remove(list(ids), lease=lease)
            call.answered(**records.done(found))
        return found

    def complete(self, results: Mapping[bytes, bytes], lease: bytes) -> list[bool]:
        ids, given = list(results), list(results.values())
        with self._call(
            "complete", **records.under_lease(ids, lease), results=records.all_printed(given)
        ) as call:
            found = self._queue.complete(ids, given, lease=lease)
            call.answered(**records.done(found))
        return found

    def fail(
        self, ids: Sequence[bytes], lease: bytes, *, delay: float | None = None
    ) -> list[FailOutcome]:
        delays_ms = [-1 if delay is None else delay * 1000] * len(ids)
        with self._call("fail", **records.under_lease(ids, lease), delays_ms=delays_ms) as call:
            found = self._queue.fail(list(ids), "it failed", lease=lease, delay=delay)
            call.answered(**records.outcomes(found))
        return found

    def release(self, ids: Sequence[bytes], lease: bytes) -> list[bool]:
        with self._call("release", **records.under_lease(ids, lease)) as call:
            found = self._queue.release(list(ids), lease=lease)
            call.answered(**records.done(found))
        return found

    def cancel(self, ids: Sequence[bytes]) -> list[bool]:
        with self._call("cancel", ids=records.hexes(ids)) as call:
            found = self._queue.cancel(list(ids))
            call.answered(**records.done(found))
        return found

    def reschedule(self, ids: Sequence[bytes], delay: float) -> list[bool]:
        told = {"ids": records.hexes(ids), "delays_ms": [delay * 1000] * len(ids)}
        with self._call("reschedule", **told) as call:
            found = self._queue.reschedule(list(ids), delay=delay)
            call.answered(**records.done(found))
        return found

    def purge(self, state: ItemState) -> int:
        with self._call("purge", state=state.value) as call:
            count = self._queue.purge(state)
            call.answered(count=count)
        return count

    def redrive(self, ids: Sequence[bytes] = ()) -> int:
        with self._call("redrive", ids=records.hexes(ids)) as call:
            count = self._queue.redrive(list(ids) or None)
            call.answered(count=count)
        return count

    def pause(self, seconds: float | None = None) -> None:
        with self._call("pause", for_ms=0 if seconds is None else seconds * 1000):
            self._queue.pause(seconds)

    def resume(self) -> None:
        with self._call("resume"):
            self._queue.resume()

    def receipt(self, batch: str) -> Receipt:
        with self._call("receipt", batch=batch) as call:
            found = self._queue.receipt(batch)
            call.answered(**records.receipt(found))
        return found

    def read_results(self, offset: int = 0, *, reader: str | None = None) -> Results:
        with self._call("read_results", reader=reader) as call:
            found = self._queue.read_results(offset, reader=reader)
            call.answered(**records.results(found.results))
        return found

    def ack_results(self, reader: str, offset: int) -> None:
        with self._call("ack_results", reader=reader, offset=offset):
            self._queue.ack_results(reader, offset)


def observe_drain(queue: ObservedQueue) -> list[bytes]:
    """Poll and remove everything that is ready; returns the ids in order."""
    found: list[bytes] = []
    while lease := queue.poll(50, lease=60):
        found += lease.ids
        if not all(queue.remove(lease.ids, lease.id)):
            raise AssertionError("what was just polled could not be removed")
    return found


def read_final_state(queue: queueber.Queue, batches: Sequence[str] = ()) -> FinalState:
    """Everything in a queue. It must not change meanwhile, not even by a lease that expires."""
    return records.final_state(
        {state: list(queue.peek_all(state)) for state in ItemState},
        list(queue.results()),
        {batch: _receipt(queue, batch) for batch in batches},
        queue.stats(),
        first_offset=queue.results_stats().first_offset,
    )


def _receipt(queue: queueber.Queue, batch: str) -> Receipt | None:
    try:
        return queue.receipt(batch)
    except queueber.NotFound:
        return None
