"""Futures that the connection's loop sets and callers wait for: concurrent or asyncio ones."""

import asyncio
import contextlib
import copy
import traceback
from concurrent.futures import Future
from concurrent.futures import InvalidStateError as FutureIsDone
from typing import Any

from queueber.errors import QueueberError

FUTURE_IS_DONE = (FutureIsDone, asyncio.InvalidStateError)
"""What either kind raises on setting a result that nobody waits for any more."""


def fail_future(future: "Future[Any]", error: BaseException) -> None:
    """Set an error on a future, unless the caller does not wait any more.

    The traceback's frames are left out. They hold objects of Cap'n Proto, which must be freed on
    the thread of their loop; if the error took them to another thread, that thread's garbage
    collector would free them and crash the process.
    """
    if isinstance(error, QueueberError):
        # A copy for each: one failure may be raised in several callers' threads.
        error = copy.copy(error)
    else:
        # A bug of ours: keep the line numbers of its traceback.
        _empty_frames(error)
    with contextlib.suppress(*FUTURE_IS_DONE):
        future.set_exception(error)


def _empty_frames(error: BaseException) -> None:
    seen: BaseException | None = error
    while seen is not None:
        traceback.clear_frames(seen.__traceback__)
        seen = seen.__context__
