"""The life of a worker process: one pool, told what to do by its parent."""

import asyncio
import signal
from dataclasses import replace
from multiprocessing.connection import Connection

from queueber.errors import QueueberError
from queueber.worker.local import run_loop
from queueber.worker.messages import STOP_NOW, Ended, Mouth
from queueber.worker.pool import Pool
from queueber.worker.settings import GRACE_SECONDS_MAX, Settings

_STATS_SECONDS = 0.25


def main(settings: Settings, is_until_empty: bool, ears: Connection, pipe: Connection) -> None:
    # Ctrl-C reaches the whole group of processes; what it means is for the parent to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    mouth = Mouth(pipe)
    # The parent has seen the server. Should both restart now, the process waits for the server.
    patient = replace(settings, connect_seconds=GRACE_SECONDS_MAX)
    pool = Pool(patient, mouth, is_until_empty=is_until_empty)
    # At once: it may be the last that is heard of this process, see `Slot.deaths`.
    pool.on_milestone = lambda: mouth.say(pool.stats())
    code = text = ""
    try:
        run_loop(asyncio.new_event_loop(), _live(pool, ears, mouth))
    except QueueberError as error:
        code, text = error.code, str(error)
    mouth.say(Ended(pool.stats(), code, text), is_last=True)


async def _live(pool: Pool, ears: Connection, mouth: Mouth) -> None:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, pool.stop)
    loop.add_reader(ears.fileno(), _listen, pool, ears)
    telling = asyncio.ensure_future(_tell(pool, mouth))
    try:
        await pool.run()
    finally:
        telling.cancel()
        loop.remove_reader(ears.fileno())


def _listen(pool: Pool, ears: Connection) -> None:
    try:
        pool.stop(now=ears.recv() == STOP_NOW)
    except EOFError:
        # The parent has gone, and nobody else would ever stop us.
        asyncio.get_running_loop().remove_reader(ears.fileno())
        pool.stop()


async def _tell(pool: Pool, mouth: Mouth) -> None:
    while True:
        mouth.say(pool.stats())
        await asyncio.sleep(_STATS_SECONDS)
