"""Calls about bulk loads. All of them are safe to repeat."""

from collections.abc import Sequence
from concurrent.futures import Future
from operator import methodcaller
from typing import Any

from queueber.client.arguments import values
from queueber.client.arguments.values import Seconds
from queueber.client.transport.remote_queue import RemoteQueue, filled
from queueber.errors import InvalidArgument
from queueber.limits import LOAD_NAME_BYTES_MAX, LOAD_TIMEOUT_MS_MAX
from queueber.model import LoadInfo, LoadRef, Part, PartRef
from queueber.wire import loads as wire

_CHECK_SECONDS = 600.0
"""How long the server may take to check a part's files, or to commit."""


class LoadCalls:
    def __init__(self, queue: RemoteQueue) -> None:
        self._queue = queue

    def begin(
        self, ref: LoadRef, *, batch: str | None, timeout: Seconds | None, must_exist: bool
    ) -> "Future[LoadInfo]":
        batch_name = "" if batch is None else values.to_batch(batch)
        timeout_ms = 0
        if timeout is not None:
            timeout_ms = values.to_some_ms("timeout", timeout, LOAD_TIMEOUT_MS_MAX)

        def write(body: Any) -> None:
            wire.write_load_ref(body, ref)
            body.batch = batch_name
            body.timeoutMs = timeout_ms
            body.mustExist = must_exist

        return self._queue.ask(filled("beginLoad", write), _read_load)

    def stage(
        self, ref: LoadRef, part: PartRef, file: str, offset: int, data: bytes
    ) -> "Future[None]":
        values.to_part_ref(part)
        values.to_text("file", file, LOAD_NAME_BYTES_MAX, is_needed=True)
        if not isinstance(data, bytes):
            raise InvalidArgument(f"data: {type(data).__name__} is not bytes")

        def write(body: Any) -> None:
            wire.write_load_ref(body.init("load"), ref)
            wire.write_part_ref(body.init("part"), part)
            body.file = file
            body.offset = offset
            body.data = data

        return self._queue.ask(filled("stageFile", write), lambda _: None)

    def finish_part(self, ref: LoadRef, part: Part) -> "Future[None]":
        def write(body: Any) -> None:
            wire.write_load_ref(body.init("load"), ref)
            wire.write_part(body, part)

        return self._queue.ask(
            filled("finishPart", write), lambda _: None, work_seconds=_CHECK_SECONDS
        )

    def commit(self, ref: LoadRef, parts: Sequence[PartRef]) -> "Future[LoadInfo]":
        chosen = [values.to_part_ref(part) for part in parts]

        def write(body: Any) -> None:
            wire.write_load_ref(body.init("load"), ref)
            wire.write_part_refs(body, chosen)

        return self._queue.ask(filled("commitLoad", write), _read_load, work_seconds=_CHECK_SECONDS)

    def abort(self, ref: LoadRef) -> "Future[bool]":
        named = {"name": ref.name, "epoch": ref.epoch}
        return self._queue.ask(
            methodcaller("abortLoad", named), lambda response: bool(response.aborted)
        )

    def all(self) -> "Future[list[LoadInfo]]":
        return self._queue.ask(methodcaller("listLoads"), wire.read_loads)


def _read_load(response: Any) -> LoadInfo:
    return wire.read_load(response.load)
