"""A caller: its calls to a queue, which the history records."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from faults import records
from faults.history import ANY_STATE
from faults.simulation.contact import Contact
from queueber.model import Added, Callback, ItemState, NewItems, Polled, Results
from queueber.service.service import Service
from queueber.service.session import QueueHandle

CAP_BY = "customer"
CAP_KEYS = ("", "ann", "bob")
"""The values of that attribute; items with the first have none."""
PLAIN = b"plain "
"""How the contents of items begin that have nothing but contents."""


class Caller(Contact):
    async def add(self, items: NewItems) -> Added | None:
        producer = items.producer
        # From the contents: an add that is repeated has the same.
        cap_keys = [_cap_key(each) for each in items.contents]
        if any(cap_keys):
            items = replace(items, attributes=[{CAP_BY: key} if key else {} for key in cap_keys])
        arguments = {
            "contents": records.all_printed(items.contents),
            "keys": list(items.keys),
            "cap_keys": cap_keys,
            "delays_ms": list(items.delays_ms),
            "expires_ms": [options.expires_ms for options in items.options],
            "batch": items.batch,
            "producer": [producer.id, producer.epoch, producer.sequence] if producer else None,
        }
        added: Added | None = await self.call(
            "add",
            arguments,
            lambda service, queue: service.items.add(queue, items),
            lambda added: records.added(added.ids, added.duplicates),
        )
        return added

    async def poll(
        self, count: int, *, lease_ms: int, wait_ms: int, is_bound: bool = False
    ) -> Polled | None:
        connection = await self.connected()
        polled: Polled | None = await self.call(
            "poll",
            {"count": count, "lease_ms": lease_ms, "wait_ms": wait_ms, "bound": is_bound},
            lambda service, queue: service.polls.poll(
                queue,
                count,
                lease_ms=lease_ms,
                wait_ms=wait_ms,
                connection=connection if is_bound else None,
            ),
            lambda polled: records.polled(
                polled.lease_id, polled.ids, polled.contents, deliveries_of(polled)
            ),
        )
        if polled is not None and polled.ids and is_bound:
            connection.leases.append(polled.lease_id.hex())
        return polled if polled is not None and polled.ids else None

    async def extend(self, lease: bytes, lease_ms: int) -> None:
        await self.call(
            "extend",
            {"leases": [lease.hex()], "leases_ms": [lease_ms]},
            lambda service, queue: service.items.extend(queue, [lease], [lease_ms]),
            records.done,
        )

    async def remove(self, ids: Sequence[bytes], lease: bytes) -> None:
        await self.call(
            "remove",
            records.under_lease(ids, lease),
            lambda service, queue: service.items.remove(queue, ids, [lease]),
            records.done,
        )

    async def remove_whole(self, ids: Sequence[bytes], lease: bytes) -> None:
        """As clients do: by the number of items, and one by one if some have left the lease."""

        async def removed(service: Service, queue: QueueHandle) -> list[bool]:
            (is_whole,) = await service.items.remove_whole(queue, [lease], [len(ids)])
            return (
                [True] * len(ids) if is_whole else await service.items.remove(queue, ids, [lease])
            )

        await self.call("remove", records.under_lease(ids, lease), removed, records.done)

    async def release(self, ids: Sequence[bytes], lease: bytes) -> None:
        await self.call(
            "release",
            records.under_lease(ids, lease),
            lambda service, queue: service.items.release(queue, ids, [lease]),
            records.done,
        )

    async def complete(self, ids: Sequence[bytes], lease: bytes, results: Sequence[bytes]) -> None:
        await self.call(
            "complete",
            records.under_lease(ids, lease) | {"results": records.all_printed(results)},
            lambda service, queue: service.items.complete(queue, ids, [lease], results),
            records.done,
        )

    async def complete_whole(
        self, ids: Sequence[bytes], lease: bytes, results: Sequence[bytes]
    ) -> None:
        """As `remove_whole`."""

        async def completed(service: Service, queue: QueueHandle) -> list[bool]:
            given = [len(ids)]
            (is_whole,) = await service.items.complete_whole(queue, [lease], given, results)
            if is_whole:
                return [True] * len(ids)
            return await service.items.complete(queue, ids, [lease], results)

        told = records.under_lease(ids, lease) | {"results": records.all_printed(results)}
        await self.call("complete", told, completed, records.done)

    async def fail(self, ids: Sequence[bytes], lease: bytes, delay_ms: int) -> None:
        await self.call(
            "fail",
            records.under_lease(ids, lease) | {"delays_ms": [delay_ms] * len(ids)},
            lambda service, queue: service.items.fail(
                queue, ids, [lease], ["it failed"], [delay_ms]
            ),
            records.outcomes,
        )

    async def cancel(self, ids: Sequence[bytes]) -> None:
        await self.call(
            "cancel",
            {"ids": records.hexes(ids)},
            lambda service, queue: service.items.cancel(queue, ids),
            records.done,
        )

    async def reschedule(self, ids: Sequence[bytes], delay_ms: int) -> None:
        await self.call(
            "reschedule",
            {"ids": records.hexes(ids), "delays_ms": [delay_ms] * len(ids)},
            lambda service, queue: service.items.reschedule(queue, ids, delay_ms),
            records.done,
        )

    async def purge(self, state: ItemState, limit: int) -> None:
        await self.call(
            "purge",
            {"state": state.value, "limit": limit},
            lambda service, queue: service.items.purge(queue, state, limit),
            lambda found: {"count": found[0]},
        )

    async def cancel_batch(self, batch: str, state: ItemState, limit: int) -> None:
        """To the checker a purge: it says how many items of a state it deleted, not which."""
        await self.call(
            "purge",
            {"state": state.value, "limit": limit, "batch": batch},
            lambda service, queue: service.items.cancel_batch(queue, batch, state, b"", limit),
            lambda found: {"count": found[0]},
        )

    async def cancel_key(self, key: str) -> None:
        """To the checker a purge as well, of one item in whatever state."""
        await self.call(
            "purge",
            {"state": ANY_STATE, "key": key},
            lambda service, queue: service.items.cancel_key(queue, key),
            lambda done: {"count": int(done)},
        )

    async def redrive(self, ids: Sequence[bytes], limit: int) -> None:
        await self.call(
            "redrive",
            {"ids": records.hexes(ids), "limit": limit},
            lambda service, queue: service.items.redrive(queue, ids, limit),
            lambda found: {"count": found[0]},
        )

    async def pause(self, for_ms: int) -> None:
        await self.call(
            "pause",
            {"for_ms": for_ms},
            lambda service, queue: service.queues.pause(queue, for_ms),
            _nothing,
        )

    async def resume(self) -> None:
        await self.call("resume", {}, lambda service, queue: service.queues.resume(queue), _nothing)

    async def receipt(self, batch: str) -> None:
        await self.call(
            "receipt",
            {"batch": batch},
            lambda service, queue: service.results.receipt(queue, batch),
            records.receipt,
        )

    async def when_complete(self, batch: str, callback: Callback) -> bool:
        """Whether the server took it."""
        info = await self.call(
            "when_complete",
            {"batch": batch},
            lambda service, queue: service.callbacks.when_complete(queue, batch, callback),
            lambda info: {"item": info.item_id.hex()},
        )
        return info is not None

    async def forget_batch(self, batch: str) -> None:
        await self.call(
            "forget_batch",
            {"batch": batch},
            lambda service, queue: service.results.forget_batch(queue, batch),
            lambda forgotten: {"forgotten": forgotten},
        )

    async def wait_batch(self, batch: str, wait_ms: int) -> None:
        await self.call(
            "wait_batch",
            {"batch": batch, "wait_ms": wait_ms},
            lambda service, queue: service.results.wait_for_batch(queue, batch, wait_ms),
            records.receipt,
        )

    async def read_results(self, reader: str, limit: int, wait_ms: int) -> Results | None:
        found: Results | None = await self.call(
            "read_results",
            {"reader": reader, "limit": limit},
            lambda service, queue: service.results.read_results(
                queue, reader=reader, offset=0, limit=limit, wait_ms=wait_ms
            ),
            lambda found: records.results(found.results),
        )
        return found

    async def drop_reader(self, reader: str) -> None:
        await self.call(
            "drop_reader",
            {"reader": reader},
            lambda service, queue: service.results.drop_reader(queue, reader),
            lambda dropped: {"done": [dropped]},
        )

    async def ack_results(self, reader: str, offset: int) -> None:
        await self.call(
            "ack_results",
            {"reader": reader, "offset": offset},
            lambda service, queue: service.results.ack_results(queue, reader, offset),
            _nothing,
        )


def _nothing(_: None) -> dict[str, Any]:
    return {}


def deliveries_of(polled: Polled) -> Sequence[int]:
    details = polled.details
    return details.deliveries or details.attempts or [1] * polled.count


def _cap_key(contents: bytes) -> str:
    return "" if contents.startswith(PLAIN) else CAP_KEYS[sum(contents) % len(CAP_KEYS)]
