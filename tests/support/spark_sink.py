"""A queue that Spark writes to, and what is in it afterwards."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

import queueber
from queueber.ids import origin_of
from queueber.model import ItemInfo, ItemState
from queueber.testing import ServerProcess

T = TypeVar("T")

WAIT_SECONDS = 60.0
"""How long anything may take that is to happen soon."""


@dataclass(frozen=True)
class Sink:
    server: ServerProcess
    queue: queueber.Queue

    def write(self, rows: DataFrame, **options: object) -> None:
        given = {"address": self.server.address, "queue": self.queue.name, **options}
        writer = rows.write.format("queueber").mode("append")
        for name, value in given.items():
            writer = writer.option(name, str(value))
        writer.save()

    def items(self) -> list[ItemInfo]:
        """All that wait in the queue, in order of contents.

        The delayed come first: one that becomes ready meanwhile is seen twice, not missed.
        """
        found = {item.id: item for item in self.queue.peek_all(ItemState.DELAYED)}
        found |= {item.id: item for item in self.queue.peek_all(ItemState.READY)}
        return sorted(found.values(), key=lambda item: (item.contents, item.id))

    def contents(self) -> list[bytes]:
        return [item.contents for item in self.items()]

    def origins(self) -> dict[bytes, tuple[int, int] | None]:
        """Of each contents: partition and row."""
        return {item.contents: origin_of(item.id) for item in self.items()}

    def wait_settled(self) -> None:
        """Nothing is under way in the queue, and no file of any load is left."""
        assert self.queue.loads() == []
        wait_until(lambda: staged_files(self.server) == [])

    def assert_untouched(self) -> None:
        """Nobody would know that there was a write."""
        stats = self.queue.stats()
        assert (stats.ready, stats.delayed, stats.added_total, stats.batches) == (0, 0, 0, 0)
        assert (stats.contents_bytes, stats.duplicates_total) == (0, 0)
        assert self.contents() == []
        self.wait_settled()


def staged_files(server: ServerProcess) -> list[Path]:
    """All that waits beside the store, with the directories; what goes meanwhile, too."""
    folder = server.data_dir / "loads"
    try:
        return sorted(folder.rglob("*"))
    except FileNotFoundError:
        return [folder]


def wait_until(
    is_so: Callable[[], bool], seconds: float = WAIT_SECONDS, *, pause: float = 0.02
) -> None:
    """Ask again and again, where nobody tells us."""
    give_up_at = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < give_up_at, "it did not happen in time"
        time.sleep(pause)


class Gate:
    """Lets a partition's task go on when the test says so. Files are what tasks and tests share."""

    def __init__(self, folder: Path, partition: int) -> None:
        self._folder = folder
        self._partition = partition

    def hold(self, rows: DataFrame) -> DataFrame:
        """The rows, of which this partition's come only when the gate is open."""
        folder, partition = str(self._folder), self._partition

        def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from pyspark import TaskContext

            context = TaskContext.get()
            if context is not None and context.partitionId() == partition:
                (Path(folder) / "reached").touch()
                wait_until((Path(folder) / "open").exists, 120)
            yield from batches

        return rows.mapInArrow(pass_on, rows.schema)

    def open(self) -> None:
        (self._folder / "open").touch()

    @contextmanager
    def watched(self, look: Callable[[], T]) -> "Iterator[Future[T]]":
        """Open the gate when `look`, which runs beside the block once it is reached, has ended.

        Only the thread that made a Spark session may use it, so it is the looking that moves.
        """

        def look_and_open() -> T:
            try:
                wait_until((self._folder / "reached").exists)
                return look()
            finally:
                self.open()

        with ThreadPoolExecutor() as pool:
            yield pool.submit(look_and_open)


class Meter:
    """Counts the bytes that clients send to a server."""

    def __init__(self, listener: socket.socket, target: tuple[str, int]) -> None:
        self._listener = listener
        self._target = target
        self.sent = 0
        host, port = listener.getsockname()
        self.address = f"{host}:{port}"

    def accept(self) -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                for source, target, counts in ((near, far, True), (far, near, False)):
                    threading.Thread(
                        target=self._carry, args=(source, target, counts), daemon=True
                    ).start()

    def _carry(self, source: socket.socket, target: socket.socket, counts: bool) -> None:
        with suppress(OSError), closing(target):
            while data := source.recv(1 << 16):
                if counts:
                    self.sent += len(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@contextmanager
def metered(server: ServerProcess) -> Iterator[Meter]:
    host, port = server.address.rsplit(":", 1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        meter = Meter(listener, (host, int(port)))
        thread = threading.Thread(target=meter.accept, daemon=True)
        thread.start()
        yield meter
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
