"""A million idle streams: how a gateway reaches them, and its memory afterwards."""

import random
import time

from bench.many_topics import create_topics, topic_name
from bench.measure import bench_parser, scratch, start_report
from bench.peers.order import Tally
from bench.peers.processes import process_ids
from bench.peers.usage import usage_of
from bench.streams.callers import run_callers
from bench.streams.requests import request, stream_path
from queueber import connect
from queueber.testing import running_server
from tests.support.http import running_gateway

_DESCRIPTION = """Create --streams topics with a message each, start a gateway, and ask for the
tail of --random of them, chosen at random, from 32 callers over HTTP: once, and again. Measure the
rates, and the resident memory of the gateway before and after."""

_CALLERS = 32
_GROWTH_MB_MAX = 50.0


def _asked(port: int, streams: int, calls: int, seed: int) -> float:
    """Reads a second."""
    chosen = random.Random(seed)
    share = calls // _CALLERS
    coming = [
        (
            request("GET", stream_path(topic_name(chosen.randrange(streams))) + "?offset=now")
            for _ in range(share)
        )
        for _ in range(_CALLERS)
    ]
    tally = Tally()
    run_callers(port, coming, float("inf"), 1, tally)
    return tally.items_per_second


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("--streams", type=int, default=1_000_000, help="that there are")
    parser.add_argument("--random", type=int, default=100_000, help="reads of random streams")
    arguments = parser.parse_args()
    with scratch(arguments.dir) as folder:
        report = start_report("A gateway before many streams", arguments, folder)
        with running_server("--durability", "sync", data_dir=folder / "data") as server:
            with connect(server.address) as client:
                create_topics(client, arguments.streams)
            server.stop()
            started = time.perf_counter()
            server.start()
            start_seconds = time.perf_counter() - started
            with running_gateway(server.address) as gateway:
                port = gateway.host_port[1]

                def resident_mb() -> float:
                    return usage_of(process_ids(gateway.process.pid)).resident_bytes / 1e6

                _asked(port, arguments.streams, 1000, 0)
                before_mb = resident_mb()
                rates = [_asked(port, arguments.streams, arguments.random, n) for n in (1, 2)]
                after_mb = resident_mb()
            assert server.process is not None
            server_mb = usage_of(process_ids(server.process.pid)).resident_bytes / 1e6
    report.table(
        "Many streams",
        [
            {"figure": "start of the server, s", "measured": start_seconds},
            {"figure": "reads/s of random streams", "measured": rates[0]},
            {"figure": "the same of others", "measured": rates[1]},
            {"figure": "gateway before, MB", "measured": before_mb},
            {"figure": "gateway after, MB", "measured": after_mb},
            {"figure": "server after, MB", "measured": server_mb},
        ],
    )
    report.verdict(
        f"the gateway grows by less than {_GROWTH_MB_MAX:g} MB: {after_mb - before_mb:.0f} MB",
        is_met=after_mb - before_mb < _GROWTH_MB_MAX,
    )
    report.write_json(arguments.json)


if __name__ == "__main__":
    main()
