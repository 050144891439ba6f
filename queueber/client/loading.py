"""Calls of loads. All of them may be repeated."""

from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from queueber.client.arguments import to_batch, to_number, to_some_ms, to_text
from queueber.client.caller import Caller
from queueber.errors import InvalidArgument
from queueber.limits import LOAD_NAME_BYTES_MAX, LOAD_TIMEOUT_MS_MAX, PARTITIONS_MAX
from queueber.model import LoadInfo, LoadRef, Part, PartRef
from queueber.wire.loads import (
    read_load,
    read_loads,
    write_load_ref,
    write_part,
    write_part_ref,
    write_part_refs,
)

_CHECK_SECONDS_MAX = 600.0
"""How long the server may take over a part's files, or over a commit."""


def to_load_ref(name: object, epoch: object) -> LoadRef:
    return LoadRef(
        to_text("load", name, LOAD_NAME_BYTES_MAX, is_needed=True), to_number("epoch", epoch)
    )


def to_part_ref(part: object) -> PartRef:
    if not isinstance(part, PartRef):
        raise InvalidArgument(f"part: {part!r} is not a PartRef")
    to_number("partition", part.partition, limit=PARTITIONS_MAX - 1)
    to_text("attempt", part.attempt, LOAD_NAME_BYTES_MAX, is_needed=True)
    return part


class LoadCalls:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._core = caller.core

    def begin(
        self, ref: LoadRef, *, batch: str | None, timeout: float | None, must_exist: bool
    ) -> "Future[LoadInfo]":
        name = "" if batch is None else to_batch(batch)
        timeout_ms = 0 if timeout is None else to_some_ms("timeout", timeout, LOAD_TIMEOUT_MS_MAX)
        return self._core.submit(partial(self._begin, ref, name, timeout_ms, must_exist))

    async def _begin(self, ref: LoadRef, batch: str, timeout_ms: int, must_exist: bool) -> LoadInfo:
        def send(queue: Any) -> Any:
            request = queue.beginLoad_request()
            body = request.init("req")
            write_load_ref(body, ref)
            body.batch = batch
            body.timeoutMs = timeout_ms
            body.mustExist = must_exist
            return request.send()

        return read_load((await self._call(send)).load)

    def stage(
        self, ref: LoadRef, part: PartRef, file: str, offset: int, data: bytes
    ) -> "Future[None]":
        to_part_ref(part)
        to_text("file", file, LOAD_NAME_BYTES_MAX, is_needed=True)
        if not isinstance(data, bytes):
            raise InvalidArgument(f"data: {type(data).__name__} is not bytes")
        return self._core.submit(partial(self._stage, ref, part, file, offset, data))

    async def _stage(
        self, ref: LoadRef, part: PartRef, file: str, offset: int, data: bytes
    ) -> None:
        def send(queue: Any) -> Any:
            request = queue.stageFile_request()
            body = request.init("req")
            write_load_ref(body.init("load"), ref)
            write_part_ref(body.init("part"), part)
            body.file = file
            body.offset = offset
            body.data = data
            return request.send()

        await self._call(send)

    def finish_part(self, ref: LoadRef, part: Part) -> "Future[None]":
        return self._core.submit(partial(self._finish_part, ref, part))

    async def _finish_part(self, ref: LoadRef, part: Part) -> None:
        def send(queue: Any) -> Any:
            request = queue.finishPart_request()
            body = request.init("req")
            write_load_ref(body.init("load"), ref)
            write_part(body, part)
            return request.send()

        await self._call(send, _CHECK_SECONDS_MAX)

    def commit(self, ref: LoadRef, parts: Sequence[PartRef]) -> "Future[LoadInfo]":
        chosen = [to_part_ref(part) for part in parts]
        return self._core.submit(partial(self._commit, ref, chosen))

    async def _commit(self, ref: LoadRef, parts: Sequence[PartRef]) -> LoadInfo:
        def send(queue: Any) -> Any:
            request = queue.commitLoad_request()
            body = request.init("req")
            write_load_ref(body.init("load"), ref)
            write_part_refs(body, parts)
            return request.send()

        return read_load((await self._call(send, _CHECK_SECONDS_MAX)).load)

    def abort(self, ref: LoadRef) -> "Future[bool]":
        return self._core.submit(partial(self._abort, ref))

    async def _abort(self, ref: LoadRef) -> bool:
        def send(queue: Any) -> Any:
            request = queue.abortLoad_request()
            write_load_ref(request.init("load"), ref)
            return request.send()

        return bool((await self._call(send)).aborted)

    def all(self) -> "Future[list[LoadInfo]]":
        return self._core.submit(self._all)

    async def _all(self) -> list[LoadInfo]:
        return read_loads(await self._call(lambda queue: queue.listLoads()))

    def _call(self, send: Any, work_seconds: float = 0.0) -> Coroutine[Any, Any, Any]:
        return self._caller.call(send, is_repeatable=True, work_seconds=work_seconds)
