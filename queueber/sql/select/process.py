"""The processes that run SELECT: started when they are needed, used again, killed when in doubt."""

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache, partial

import pyarrow as pa

from queueber.errors import (
    WIRE_ERRORS,
    Internal,
    InvalidArgument,
    QueueberError,
    ResourceExhausted,
    Unavailable,
)
from queueber.limits import (
    MIB,
    SECOND_MS,
    SELECT_ENGINE_BYTES,
    SELECT_IDLE_MS,
    SELECT_MEMORY_BYTES,
    SELECT_WAITS_MAX,
    SELECTS_MAX,
)
from queueber.sql.select.admission import Admission
from queueber.sql.select.answers import Column, SelectResult, rows_of
from queueber.sql.select.bounds import SelectBounds
from queueber.sql.select.engine.frames import NO_MEMORY, Frame, FrameLost, receive, send
from queueber.sql.select.needs import Need, read_needs

_PASSED_ON = ("PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG")
"""What the engine gets of the environment: no token, no password is in it."""
_CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE}
"""How a process ends that leaves its stack. One that gets no memory aborts, exits, or is killed."""


class Engine:
    """One process. Its calls block, so they are made on threads; `kill` ends any of them."""

    def __init__(self, memory_bytes: int, engine_bytes: int) -> None:
        command = [sys.executable, "-P", "-m", "queueber.sql.select.engine"]
        self._memory_bytes = memory_bytes
        self._process = subprocess.Popen(
            [*command, str(memory_bytes), str(engine_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Control-C at a terminal is not meant for it
            env={
                **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
                # Address space is what is counted, so allocators must not set it aside.
                "MALLOC_ARENA_MAX": "1",
                "ARROW_DEFAULT_MEMORY_POOL": "system",
                "OPENBLAS_NUM_THREADS": "1",
            },
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self._descriptors = threading.Lock()
        """Nobody closes a pipe while a thread uses it: its number may be that of another file."""
        self._is_late = False
        self._is_spent = False
        """Whether it has grown too much, or failed too badly, to be used again."""
        self._is_at_rest = True
        """Whether it waits for a statement."""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def can_go_on(self) -> bool:
        """Whether it can run another statement."""
        is_alive = self._process.poll() is None
        return is_alive and self._is_at_rest and not self._is_spent and not self._is_late

    def too_late(self) -> None:
        self._is_late = True
        self._process.kill()

    def kill(self) -> None:
        """Whatever it does ends; `end` has to follow."""
        self._process.kill()

    def end(self) -> None:
        """Kill it and wait until it is gone."""
        self._process.kill()
        self._process.wait()
        with self._descriptors:
            self._in.close()
            self._out.close()

    # --- one statement ----------------------------------------------------------------------------

    def ask(self, text: str, parameters: str, bounds: SelectBounds) -> list[Need]:
        """What a statement needs. Raises its errors."""
        asked = {
            "sql": text,
            "parameters": parameters,
            "now_us": int(datetime.now(UTC).timestamp() * 1_000_000),
            "rows": bounds.rows,
            "bytes": bounds.bytes,
            "seconds": bounds.seconds,
            "narrows": bounds.narrows,
        }
        self._is_at_rest = False
        self._send(Frame.STATEMENT, json.dumps(asked).encode())
        return read_needs(self._receive(Frame.NEEDS))

    def begin_table(self, need: Need) -> None:
        self._send(Frame.TABLE, need.table.encode())

    def put(self, batch: pa.RecordBatch) -> None:
        self._send(Frame.ROWS, memoryview(batch.serialize()))

    def drop(self) -> None:
        """Forget the statement that was asked."""
        if not self._is_at_rest:
            self._send(Frame.DROP)
            self._is_at_rest = True

    def run(self) -> SelectResult:
        self._send(Frame.GO)
        columns = [Column(*each) for each in json.loads(self._receive(Frame.COLUMNS))]
        schema: pa.Schema | None = None
        batches: list[pa.RecordBatch] = []
        while True:
            frame, body = self._receive_any()
            if frame is Frame.END:
                self._rest(is_spent=bool(body))
                return SelectResult(columns, rows_of(batches, columns))
            if schema is None:
                schema = pa.ipc.read_schema(pa.py_buffer(body))
            else:
                batches.append(pa.ipc.read_record_batch(pa.py_buffer(body), schema))

    def _send(self, frame: Frame, body: bytes | memoryview = b"") -> None:
        try:
            with self._descriptors:
                send(self._in.fileno(), frame, body)
        except (FrameLost, ValueError):  # the other end is closed, or ours
            raise self._gone() from None

    def _receive(self, expected: Frame) -> bytearray:
        frame, body = self._receive_any()
        if frame is not expected:
            raise Internal(f"the query engine sent {frame.name} instead of {expected.name}")
        return body

    def _receive_any(self) -> tuple[Frame, bytearray]:
        try:
            with self._descriptors:
                frame, body = receive(self._out.fileno())
        except (FrameLost, ValueError):
            raise self._gone() from None
        if frame is Frame.ERROR:
            code, text, is_spent = json.loads(body)
            self._rest(is_spent=is_spent)
            raise self._no_memory() if text == NO_MEMORY else WIRE_ERRORS[code](text)
        return frame, body

    def _rest(self, *, is_spent: bool) -> None:
        self._is_at_rest = True
        self._is_spent = is_spent

    def _gone(self) -> QueueberError:
        """Why the process has ended: at a deadline, by a crash, or for want of memory."""
        ended_by = -self._process.wait()
        if self._is_late or ended_by == signal.SIGXCPU:
            return EngineLate("late")
        return self._crashed(ended_by) if ended_by in _CRASHES else self._no_memory()

    def _crashed(self, ended_by: int) -> QueueberError:
        return InvalidArgument(
            f"values: the SELECT has crashed its query engine ({signal.Signals(ended_by).name}); "
            "JSON that it looks into may be nested too deeply, or it may need more than "
            f"{self._memory_bytes // MIB} MiB of memory; leave these rows out with a WHERE"
        )

    def _no_memory(self) -> QueueberError:
        return ResourceExhausted(
            f"sql: the SELECT needs more than {self._memory_bytes // MIB} MiB of memory; let it "
            "read fewer rows or columns, or group by fewer values"
        )


class EngineLate(Unavailable):
    """The deadline has passed."""


class Engines:
    """The engines of a program: a few at a time."""

    def __init__(
        self,
        *,
        engines_max: int = SELECTS_MAX,
        waits_max: int = SELECT_WAITS_MAX,
        memory_bytes: int = SELECT_MEMORY_BYTES,
        engine_bytes: int = SELECT_ENGINE_BYTES,
    ) -> None:
        self._sizes = (memory_bytes, engine_bytes)
        self._admission = Admission(engines_max, waits_max)
        self._idle: dict[Engine, threading.Timer] = {}
        self._lock = threading.Lock()
        self._is_closed = False
        self.threads = ThreadPoolExecutor(engines_max, thread_name_prefix="queueber-select")
        atexit.register(self.close)

    @asynccontextmanager
    async def turn(self, seconds: float) -> AsyncIterator[Engine]:
        """An engine for one statement, killed after so many seconds, or if it is in the middle of
        a statement at the end of the block."""
        await self._admission.take()
        try:
            engine = self._take()
            late = _timer(seconds, engine.too_late)
            try:
                yield engine
            finally:
                late.cancel()
                self._put_back(engine)
        finally:
            self._admission.give_back()

    def _take(self) -> Engine:
        with self._lock:
            if self._is_closed:
                raise Unavailable("the program is stopping; retry elsewhere")
            while self._idle:
                engine, retires = self._idle.popitem()
                retires.cancel()
                if engine.can_go_on:
                    return engine
                engine.end()
        return Engine(*self._sizes)

    def _put_back(self, engine: Engine) -> None:
        with self._lock:
            if not self._is_closed and engine.can_go_on:
                self._idle[engine] = _timer(
                    SELECT_IDLE_MS / SECOND_MS, partial(self._retire, engine)
                )
                return
        engine.kill()
        try:
            self.threads.submit(engine.end)  # not here: loops of others wait
        except RuntimeError:
            engine.end()  # the program ends

    def _retire(self, engine: Engine) -> None:
        with self._lock:
            is_idle = self._idle.pop(engine, None) is not None
        if is_idle:
            engine.end()

    def close(self) -> None:
        """End all processes. Statements that run fail."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, {}
        for engine, retires in idle.items():
            retires.cancel()
            engine.end()
        self.threads.shutdown(wait=False)
        atexit.unregister(self.close)


@cache
def shared_engines() -> Engines:
    """Those of the program: made when they are first needed, gone when it ends."""
    return Engines()


def _timer(seconds: float, act: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    return timer
