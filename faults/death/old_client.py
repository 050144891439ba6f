"""A member of a fleet that knows only the original schema, and loads no other.

python -m faults.death.old_client old ADDRESS FILE NAME SEED
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import capnp

from faults.history import Outcome, printed
from faults.recorder import Recorder, recording_to
from tests.rpc import original_client as original

T = TypeVar("T")

LEASE_SECONDS = 1
_UNKNOWN = ("INTERNAL", "OUTCOME_UNKNOWN")
_AWAY_SECONDS = 0.1


class Observed:
    def __init__(self, queue: Any, recorder: Recorder, name: str) -> None:
        self._queue = queue
        self._recorder = recorder
        self._name = name

    async def add(self, contents: list[bytes]) -> None:
        told = {"contents": [printed(each) for each in contents]}
        await self._call(
            "add",
            told,
            lambda: original.add(self._queue, *contents),
            lambda ids: {"ids": [each.hex() for each in ids]},
        )

    async def poll(self, count: int) -> Any:
        return await self._call(
            "poll",
            {"lease_ms": LEASE_SECONDS * 1000},
            lambda: original.poll(self._queue, count, lease_secs=LEASE_SECONDS),
            lambda found: {
                "lease": found.lease.hex(),
                "ids": [item.id.hex() for item in found.items],
                "contents": [printed(item.contents) for item in found.items],
            },
        )

    async def remove(self, item_id: bytes, lease: bytes) -> None:
        await self._call(
            "remove",
            {"ids": [item_id.hex()], "leases": [lease.hex()]},
            lambda: original.remove(self._queue, item_id, lease),
            lambda is_done: {"done": [is_done]},
        )

    async def extend(self, lease: bytes) -> None:
        await self._call(
            "extend",
            {"leases": [lease.hex()], "leases_ms": [LEASE_SECONDS * 1000]},
            lambda: original.extend(self._queue, lease, LEASE_SECONDS),
            lambda is_done: {"done": [is_done]},
        )

    async def _call(
        self,
        operation: str,
        arguments: Mapping[str, Any],
        make: Callable[[], Awaitable[T]],
        answer_of: Callable[[T], Mapping[str, Any]],
    ) -> T:
        pending = self._recorder.begin(self._name, operation, "default", arguments)
        try:
            answer = await make()
        except capnp.KjException as error:
            self._recorder.end(pending, _outcome_of(error))
            raise
        pending.answered(**answer_of(answer))
        self._recorder.end(pending, Outcome.OK)
        return answer


def _outcome_of(error: Any) -> Outcome:
    """Refusals begin with a code in capitals."""
    code = error.description.removeprefix("remote exception: ").partition(":")[0]
    is_certain = code.isupper() and code not in _UNKNOWN
    return Outcome.REFUSED if is_certain else Outcome.UNKNOWN


async def behave(queue: Observed, random: Random) -> None:
    await queue.add([b"old %x" % random.getrandbits(48) for _ in range(random.randrange(1, 10))])
    found = await queue.poll(random.randrange(1, 10))
    if random.random() < 0.2:
        await queue.extend(found.lease) if found.lease else None
    for item in found.items:
        if random.random() < 0.8:
            await queue.remove(item.id, found.lease)
    await asyncio.sleep(random.uniform(0, 0.05))


async def run(address: str, recorder: Recorder, name: str, random: Random) -> None:
    host, port = address.split(":")
    async with capnp.kj_loop():
        while True:
            try:
                stream = await capnp.AsyncIoStream.create_connection(host, int(port))
                client = capnp.TwoPartyClient(stream)
                queue = client.bootstrap().cast_as(original.schema.Queue)
                while True:
                    await behave(Observed(queue, recorder, name), random)
            except (capnp.KjException, OSError):
                await asyncio.sleep(_AWAY_SECONDS)


def main() -> None:
    _, address, file, name, seed = sys.argv[1:]
    with recording_to(Path(file)) as recorder:
        asyncio.run(run(address, recorder, name, Random(seed)))


if __name__ == "__main__":
    main()
