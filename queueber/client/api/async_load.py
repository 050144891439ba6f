"""A bulk load: many items that become visible at once."""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future

from queueber.client.calls.loads import LoadCalls
from queueber.client.transport.futures import wait_for_async
from queueber.limits import LOAD_CHUNK_BYTES
from queueber.model import LoadInfo, LoadRef, LoadState, Part, PartRef

_CHUNKS_UNDER_WAY = 4


class AsyncLoad:
    """Many items that become visible at once, when the load is committed.

    `queueber.db.bulk.part_writer.PartWriter` builds the parts. A process that begins a load of the
    same name joins it.
    """

    def __init__(self, calls: LoadCalls, facts: LoadInfo) -> None:
        self._calls = calls
        self.facts = facts
        """What the server answered when the load was begun: all that a `PartWriter` needs."""

    def __repr__(self) -> str:
        return f"<AsyncLoad {self.ref.name!r} epoch={self.ref.epoch} {self.facts.state.value}>"

    @property
    def ref(self) -> LoadRef:
        return self.facts.ref

    @property
    def is_committed(self) -> bool:
        """Whether it had been committed before: then there is nothing left to do."""
        return self.facts.state is LoadState.COMMITTED

    async def stage(self, part: PartRef, file: str, data: bytes) -> None:
        """Send a file of a part, in chunks of which four are under way at a time."""
        under_way: deque[Future[None]] = deque()
        try:
            for at in range(0, len(data), LOAD_CHUNK_BYTES):
                if len(under_way) == _CHUNKS_UNDER_WAY:
                    await wait_for_async(under_way.popleft())
                chunk = data[at : at + LOAD_CHUNK_BYTES]
                under_way.append(self._calls.stage(self.ref, part, file, at, chunk))
            while under_way:
                await wait_for_async(under_way.popleft())
        finally:
            # After a failure nobody waits for the others.
            for future in under_way:
                future.add_done_callback(lambda done: done.cancelled() or done.exception())
                future.cancel()

    async def finish_part(self, part: Part) -> None:
        """All files of the part are staged; the server checks them."""
        await wait_for_async(self._calls.finish_part(self.ref, part))

    async def commit(self, parts: Sequence[PartRef]) -> LoadInfo:
        """Make the items of these parts visible, all at once. Safe to repeat."""
        return await wait_for_async(self._calls.commit(self.ref, parts))

    async def abort(self) -> bool:
        """Drop everything that was staged; False when there is no such load, or it is committed."""
        return await wait_for_async(self._calls.abort(self.ref))
