"""The futures between the core's loop and whoever waits, of either kind."""

import asyncio
import contextlib
import copy
import traceback
from concurrent.futures import Future
from concurrent.futures import InvalidStateError as FutureIsDone
from typing import Any

from queueber.errors import QueueberError

FUTURE_IS_DONE = (FutureIsDone, asyncio.InvalidStateError)
"""What a future of either kind raises when its caller has gone."""


def fail_future(future: "Future[Any]", error: BaseException) -> None:
    """Hand an error over, unless the caller has gone.

    The frames that it came through stay behind. They hold objects of Cap'n Proto, which must be
    freed on the thread of their loop; with the error they would go to another thread, whose
    garbage collector would free them: that ends the process.
    """
    if isinstance(error, QueueberError):
        # Of its own, too: several callers may be told of one failure, each on its thread.
        error = copy.copy(error)
    else:
        # A fault of ours. Its lines are kept, to be found by.
        _empty_frames(error)
    with contextlib.suppress(*FUTURE_IS_DONE):
        future.set_exception(error)


def _empty_frames(error: BaseException) -> None:
    seen: BaseException | None = error
    while seen is not None:
        traceback.clear_frames(seen.__traceback__)
        seen = seen.__context__
