"""Connections of Spark's Python processes: one for each task, closed when it ends."""

import contextlib
from collections.abc import Iterator
from threading import Event

import queueber
from queueber import Queue, Snapshot
from queueber.errors import NotFound, ResourceExhausted, Unavailable
from queueber.spark.options import CommonOptions

_OPEN_TRIES = 20
_OPEN_PAUSE_SECONDS = 0.5


@contextlib.contextmanager
def connected(options: CommonOptions, *, must_exist: bool = True) -> Iterator[Queue]:
    """The queue that the options name; an error names the option to correct."""
    try:
        client = queueber.connect(options.address)
    except Unavailable as error:
        raise Unavailable(
            f"option 'address': no server answers at {options.address}; start one, or give its "
            f"host:port ({error})"
        ) from None
    with client:
        yield client.queue(options.queue, must_exist=must_exist)


@contextlib.contextmanager
def planning(options: CommonOptions) -> Iterator[Queue]:
    """As `connected`, on the driver: a queue that does not exist is an error at once."""
    with connected(options) as queue:
        try:
            queue.results_stats()
        except NotFound as error:
            raise NotFound(f"option 'queue': {error}") from None
        yield queue


def open_snapshot(queue: Queue) -> Snapshot:
    """Open a snapshot; when the server has as many as it keeps, retry for some seconds.

    Spark does not say when a read has ended, so snapshots stay until they expire or others replace
    them.
    """
    for _ in range(_OPEN_TRIES):
        with contextlib.suppress(ResourceExhausted):
            return queue.open_snapshot()
        Event().wait(_OPEN_PAUSE_SECONDS)
    return queue.open_snapshot()
