"""What runs in a worker process: one pool, started and stopped by the parent."""

import asyncio
import signal
from dataclasses import replace
from multiprocessing.connection import Connection

from queueber.errors import QueueberError
from queueber.worker.pool.background import Background
from queueber.worker.pool.in_process import run_loop
from queueber.worker.pool.pool import Pool
from queueber.worker.processes.process_messages import STOP_NOW, Ended, ParentPipe
from queueber.worker.worker_settings import TIMEOUT_SECONDS_MAX, WorkerSettings

_STATS_SECONDS = 0.25


def main(
    settings: WorkerSettings, is_until_empty: bool, commands: Connection, messages: Connection
) -> None:
    # Ctrl-C reaches all processes of a terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent = ParentPipe(messages)
    # The parent has reached the server and the queue. If the server is restarting now, wait for it;
    # if the queue is missing now, somebody has deleted it.
    patient = replace(settings, connect_seconds=TIMEOUT_SECONDS_MAX)
    pool = Pool(patient, parent, is_until_empty=is_until_empty, must_exist=True)
    # Sent at once: it may be the last message of this process, see `ProcessSlot.deaths`.
    pool.on_milestone = lambda: parent.send(pool.stats())
    code = text = ""
    try:
        run_loop(asyncio.new_event_loop(), _run(pool, commands, parent))
    except QueueberError as error:
        code, text = error.code, str(error)
    parent.send(Ended(pool.stats(), code, text), is_last=True)


async def _run(pool: Pool, commands: Connection, parent: ParentPipe) -> None:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, pool.stop)
    loop.add_reader(commands.fileno(), _obey, pool, commands)
    try:
        async with Background() as background:
            background.start(_send_stats, pool, parent)
            await pool.run()
    finally:
        loop.remove_reader(commands.fileno())


def _obey(pool: Pool, commands: Connection) -> None:
    try:
        pool.stop(now=commands.recv() == STOP_NOW)
    except EOFError:
        # The parent is gone, and nobody else would ever stop this process.
        asyncio.get_running_loop().remove_reader(commands.fileno())
        pool.stop()


async def _send_stats(pool: Pool, parent: ParentPipe) -> None:
    while True:
        parent.send(pool.stats())
        await asyncio.sleep(_STATS_SECONDS)
