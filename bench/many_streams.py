"""A million idle streams: how fast a gateway creates and reaches them, and the memory they take."""

import random
import time
from collections.abc import Iterator

from bench.many_topics import create_topics, topic_name
from bench.measure import bench_parser, scratch, start_report
from bench.peers.order import Tally
from bench.peers.processes import process_ids
from bench.peers.usage import usage_of
from bench.streams.callers import run_callers
from bench.streams.requests import BYTES, request, stream_path
from queueber import connect
from queueber.testing import ServerProcess, running_server
from tests.support.http import GatewayProcess, running_gateway

_DESCRIPTION = """Create --streams streams with a PUT each, from 32 callers over HTTP through one
gateway, synced (or, with --by client, through a client and 1,000 a call, each with a message).
Start the server and the gateway again, and ask for the tail of --random streams, chosen at random:
once, and again. Measure the rates, the start, and the resident memory of both processes."""

_CALLERS = 32
_GROWTH_MB_MAX = 50.0


def _created(port: int, streams: int) -> float:
    """Streams a second."""

    def puts(first: int) -> Iterator[bytes]:
        for number in range(first, streams, _CALLERS):
            yield request("PUT", stream_path(topic_name(number)), kind=BYTES)

    tally = Tally()
    run_callers(port, [puts(each) for each in range(_CALLERS)], float("inf"), 1, tally)
    return tally.items_per_second


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


def _server_mb(server: ServerProcess) -> float:
    assert server.process is not None
    return usage_of(process_ids(server.process.pid)).resident_bytes / 1e6


def _gateway_mb(gateway: GatewayProcess) -> float:
    return usage_of(process_ids(gateway.process.pid)).resident_bytes / 1e6


def _through_the_door(server: ServerProcess, streams: int) -> dict[str, float]:
    with running_gateway(server.address) as gateway:
        before_mb = _gateway_mb(gateway)
        rate = _created(gateway.host_port[1], streams)
        return {
            "PUTs/s that create a stream": rate,
            "server after them, MB": _server_mb(server),
            "gateway before them, MB": before_mb,
            "gateway after them, MB": _gateway_mb(gateway),
        }


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("--streams", type=int, default=50_000, help="that there are")
    parser.add_argument("--by", choices=["door", "client"], default="door", help="who creates them")
    parser.add_argument("--random", type=int, default=20_000, help="reads of random streams")
    arguments = parser.parse_args()
    figures: dict[str, float] = {}
    with scratch(arguments.dir) as folder:
        report = start_report("A gateway before many streams", arguments, folder)
        with running_server("--durability", "sync", data_dir=folder / "data") as server:
            if arguments.by == "door":
                figures |= _through_the_door(server, arguments.streams)
            else:
                with connect(server.address) as client:
                    create_topics(client, arguments.streams)
            server.stop()
            started = time.perf_counter()
            server.start()
            figures["start of the server, s"] = time.perf_counter() - started
            figures["server after its start, MB"] = _server_mb(server)
            with running_gateway(server.address) as gateway:
                port = gateway.host_port[1]
                _asked(port, arguments.streams, 1000, 0)
                before_mb = _gateway_mb(gateway)
                rates = [_asked(port, arguments.streams, arguments.random, n) for n in (1, 2)]
                after_mb = _gateway_mb(gateway)
            figures |= {
                "reads/s of random streams": rates[0],
                "the same of others": rates[1],
                "gateway before, MB": before_mb,
                "gateway after, MB": after_mb,
                "server after, MB": _server_mb(server),
            }
    report.table(
        "Many streams", [{"figure": name, "measured": value} for name, value in figures.items()]
    )
    report.verdict(
        f"the gateway grows by less than {_GROWTH_MB_MAX:g} MB: {after_mb - before_mb:.0f} MB",
        is_met=after_mb - before_mb < _GROWTH_MB_MAX,
    )
    report.write_json(arguments.json)


if __name__ == "__main__":
    main()
