"""`python -m bench.select`: SELECT over a topic of a million messages, and what it takes.

Prints rows a second of some statements, the memory of the program that asks (as the gateway is) and
of the engine.
"""

import argparse
import asyncio
import statistics
import time
from pathlib import Path

import queueber
from queueber.sql.select import Engines, SelectBounds, select
from queueber.testing import running_server

STATEMENTS = {
    "count": "SELECT count(*) FROM topic('bench')",
    "count by key": "SELECT key, count(*) FROM topic('bench') GROUP BY key",
    "sum of JSON": "SELECT sum((json->>'n')::INT) FROM topic('bench')",
    "last ten": "SELECT * FROM topic('bench') ORDER BY offset DESC LIMIT 10",
    "no table": "SELECT 1",
}


def resident_mb(pid: int | str, field: str = "VmRSS") -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0]) // 1024


async def fill(topic: queueber.AsyncTopic, messages: int) -> None:
    for first in range(0, messages, 10_000):
        some = range(first, min(first + 10_000, messages))
        await topic.publish([(b'{"n": %d, "name": "x"}' % (n % 1000), f"k{n % 100}") for n in some])


async def measure(address: str, messages: int, rounds: int) -> None:
    engines = Engines()
    bounds = SelectBounds(seconds=120)
    async with queueber.connect_async(address) as client:
        await fill(client.topic("bench"), messages)
        started = time.perf_counter()
        await select(client, "SELECT 1", engines=engines)
        print(f"start of an engine: {time.perf_counter() - started:.2f} s")
        before = resident_mb("self")
        for name, text in STATEMENTS.items():
            seconds = []
            engine_mb = 0
            for _ in range(rounds):
                await select(client, "SELECT 1", engines=engines)
                (engine,) = engines._idle
                started = time.perf_counter()
                asked = asyncio.ensure_future(select(client, text, (), bounds, engines=engines))
                while not asked.done():
                    engine_mb = max(engine_mb, resident_mb(engine.pid))
                    await asyncio.wait([asked], timeout=0.02)
                await asked
                seconds.append(time.perf_counter() - started)
            took = statistics.median(seconds)
            rate = (
                f"{messages / took:12,.0f} rows/s"
                if "bench" in text and "LIMIT" not in text
                else ""
            )
            print(f"{name:14} {took * 1000:9.1f} ms {rate:20} engine {engine_mb} MB")
        print(f"this program: {before} MB before, {resident_mb('self', 'VmHWM')} MB at most")
    engines.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with running_server() as server:
        asyncio.run(measure(server.address, arguments.messages, arguments.rounds))


if __name__ == "__main__":
    main()
