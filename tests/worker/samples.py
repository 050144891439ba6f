"""Handlers that worker processes of the tests import."""

import ctypes
import os
import signal
import time

import queueber

NOT_CALLABLE = 3


def double(item: queueber.WorkItem) -> bytes:
    return item.contents * 2


async def double_soon(item: queueber.WorkItem) -> bytes:
    return item.contents * 2


def own_process(item: queueber.WorkItem) -> bytes:
    return b"%d" % os.getpid()


def die_at_first(item: queueber.WorkItem) -> bytes:
    """The item `die` kills its process, as a crash would, unless it was tried before."""
    if item.contents == b"die" and item.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return item.contents


def always_die(item: queueber.WorkItem) -> None:
    os._exit(7)


def fail(item: queueber.WorkItem) -> None:
    raise ValueError(item.contents.decode())


def refuse_to_say(item: queueber.WorkItem) -> dict[str, int]:
    return {"length": len(item.contents)}


def die_after_others(item: queueber.WorkItem) -> bytes:
    """The item `die` kills its process, when the server has confirmed what was done before it."""
    if item.contents == b"die":
        time.sleep(0.05)
        os._exit(7)
    if item.contents == b"fail":
        raise ValueError
    return item.contents


def hang_at_first(item: queueber.WorkItem) -> bytes:
    """The item `hang` never ends at its first attempt; others tell in which process they were."""
    if item.contents == b"hang" and item.attempt == 1:
        time.sleep(3600)
    if item.contents == b"slow":
        time.sleep(0.7)
    return b"%d" % os.getpid()


async def block_at_first(item: queueber.WorkItem) -> bytes:
    if item.contents == b"hang" and item.attempt == 1:
        time.sleep(3600)  # noqa: ASYNC251  it is what the test is about
    return b"%d" % os.getpid()


def keep_the_interpreter(item: queueber.WorkItem) -> bytes:
    """As foreign code that never lets go of it: `hang` for ever, at its first attempt."""
    if item.attempt == 1:
        ctypes.PyDLL(None).usleep(3_600_000_000 if item.contents == b"hang" else 900_000)
    return b"%d" % item.attempt


class Marks(queueber.Middleware):
    def before(self, item: queueber.WorkItem) -> None:
        item.value = b"marked"


def seen(item: queueber.WorkItem) -> object:
    return item.value
