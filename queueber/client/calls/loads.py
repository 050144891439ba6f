"""Calls about bulk loads. All of them are safe to repeat."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from queueber.client.arguments.values import (
    Seconds,
    to_batch,
    to_part_ref,
    to_some_ms,
    to_text,
)
from queueber.client.calls.remote_queue import RemoteQueue
from queueber.errors import InvalidArgument
from queueber.limits import LOAD_NAME_BYTES_MAX, LOAD_TIMEOUT_MS_MAX
from queueber.model import LoadInfo, LoadRef, Part, PartRef
from queueber.wire.loads import (
    read_load,
    read_loads,
    write_load_ref,
    write_part,
    write_part_ref,
    write_part_refs,
)

T = TypeVar("T")

_CHECK_SECONDS_MAX = 600.0
"""How long the server may take to check a part's files, or to commit."""


class LoadCalls:
    def __init__(self, queue: RemoteQueue) -> None:
        self._queue = queue

    def begin(
        self, ref: LoadRef, *, batch: str | None, timeout: Seconds | None, must_exist: bool
    ) -> "Future[LoadInfo]":
        name = "" if batch is None else to_batch(batch)
        timeout_ms = 0 if timeout is None else to_some_ms("timeout", timeout, LOAD_TIMEOUT_MS_MAX)

        def send(queue: Any) -> Any:
            request = queue.beginLoad_request()
            body = request.init("req")
            write_load_ref(body, ref)
            body.batch = name
            body.timeoutMs = timeout_ms
            body.mustExist = must_exist
            return request.send()

        return self._ask(send, lambda response: read_load(response.load))

    def stage(
        self, ref: LoadRef, part: PartRef, file: str, offset: int, data: bytes
    ) -> "Future[None]":
        to_part_ref(part)
        to_text("file", file, LOAD_NAME_BYTES_MAX, is_needed=True)
        if not isinstance(data, bytes):
            raise InvalidArgument(f"data: {type(data).__name__} is not bytes")

        def send(queue: Any) -> Any:
            request = queue.stageFile_request()
            body = request.init("req")
            write_load_ref(body.init("load"), ref)
            write_part_ref(body.init("part"), part)
            body.file = file
            body.offset = offset
            body.data = data
            return request.send()

        return self._ask(send, lambda _: None)

    def finish_part(self, ref: LoadRef, part: Part) -> "Future[None]":
        def send(queue: Any) -> Any:
            request = queue.finishPart_request()
            body = request.init("req")
            write_load_ref(body.init("load"), ref)
            write_part(body, part)
            return request.send()

        return self._ask(send, lambda _: None, _CHECK_SECONDS_MAX)

    def commit(self, ref: LoadRef, parts: Sequence[PartRef]) -> "Future[LoadInfo]":
        chosen = [to_part_ref(part) for part in parts]

        def send(queue: Any) -> Any:
            request = queue.commitLoad_request()
            body = request.init("req")
            write_load_ref(body.init("load"), ref)
            write_part_refs(body, chosen)
            return request.send()

        return self._ask(send, lambda response: read_load(response.load), _CHECK_SECONDS_MAX)

    def abort(self, ref: LoadRef) -> "Future[bool]":
        def send(queue: Any) -> Any:
            request = queue.abortLoad_request()
            write_load_ref(request.init("load"), ref)
            return request.send()

        return self._ask(send, lambda response: bool(response.aborted))

    def all(self) -> "Future[list[LoadInfo]]":
        return self._ask(lambda queue: queue.listLoads(), read_loads)

    def _ask(
        self, send: Callable[[Any], Any], read: Callable[[Any], T], work_seconds: float = 0.0
    ) -> "Future[T]":
        return self._queue.ask(send, read, is_repeatable=True, work_seconds=work_seconds)
