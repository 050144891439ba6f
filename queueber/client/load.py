"""A load as the faces show it: blocking, and awaited."""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future

from queueber.client.loading import LoadCalls
from queueber.client.waiting import wait_for, wait_for_async
from queueber.limits import LOAD_CHUNK_BYTES
from queueber.model import LoadInfo, LoadRef, LoadState, Part, PartRef

_CHUNKS_UNDER_WAY = 4


class _Loading:
    def __init__(self, calls: LoadCalls, facts: LoadInfo) -> None:
        self._calls = calls
        self.facts = facts
        """What the server said of it when it was begun: all that the builder of a part needs."""

    @property
    def ref(self) -> LoadRef:
        return self.facts.ref

    @property
    def is_committed(self) -> bool:
        """Whether it was committed before: then there is nothing more to do."""
        return self.facts.state is LoadState.COMMITTED


class Load(_Loading):
    """Many items that become visible at once, when the load is committed.

    Parts are built with `queueber.db.bulk.part_writer.PartWriter`. Any process that begins a load
    of the same name joins it.
    """

    def stage(self, part: PartRef, file: str, data: bytes) -> None:
        """Send a file of a part."""
        under_way: deque[Future[None]] = deque()
        for at in range(0, len(data), LOAD_CHUNK_BYTES):
            if len(under_way) == _CHUNKS_UNDER_WAY:
                wait_for(under_way.popleft())
            chunk = data[at : at + LOAD_CHUNK_BYTES]
            under_way.append(self._calls.stage(self.ref, part, file, at, chunk))
        for future in under_way:
            wait_for(future)

    def finish_part(self, part: Part) -> None:
        """All files of the part are there; the server checks them."""
        wait_for(self._calls.finish_part(self.ref, part))

    def commit(self, parts: Sequence[PartRef]) -> LoadInfo:
        """Make the items of these parts visible, all at once. May be repeated."""
        return wait_for(self._calls.commit(self.ref, parts))

    def abort(self) -> bool:
        """Drop all that was staged; False when there is nothing to drop, or it is committed."""
        return wait_for(self._calls.abort(self.ref))


class AsyncLoad(_Loading):
    """Many items that become visible at once, when the load is committed. See `Load`."""

    async def stage(self, part: PartRef, file: str, data: bytes) -> None:
        """Send a file of a part."""
        for at in range(0, len(data), LOAD_CHUNK_BYTES):
            chunk = data[at : at + LOAD_CHUNK_BYTES]
            await wait_for_async(self._calls.stage(self.ref, part, file, at, chunk))

    async def finish_part(self, part: Part) -> None:
        """All files of the part are there; the server checks them."""
        await wait_for_async(self._calls.finish_part(self.ref, part))

    async def commit(self, parts: Sequence[PartRef]) -> LoadInfo:
        """Make the items of these parts visible, all at once. May be repeated."""
        return await wait_for_async(self._calls.commit(self.ref, parts))

    async def abort(self) -> bool:
        """Drop all that was staged; False when there is nothing to drop, or it is committed."""
        return await wait_for_async(self._calls.abort(self.ref))
