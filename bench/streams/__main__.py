"""`python -m bench.streams`: compares servers of Durable Streams in one run."""

import argparse

from bench.measure import bench_parser, scratch
from bench.peers.comparison import (
    RESULTS,
    add_peers_option,
    lines,
    machine,
    new_result,
    prepared,
    publish,
    take,
)
from bench.streams.contest import Plan, started, turns
from bench.streams.page import show, write_page
from bench.streams.registry import PEERS

_DESCRIPTION = """Compare the Durable Streams of Queueber with those of other servers: all servers
run the whole time on loopback, the same generator calls each from a process of its own, and they
are measured in turn. npm installs the Node and the Prisma server and cargo builds the Rust server,
once, below .bench. The result goes to bench/results/ and, with --page, into docs/performance.md."""


def _arguments() -> argparse.Namespace:
    parser = bench_parser(_DESCRIPTION)
    add_peers_option(parser, PEERS)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a round of one column")
    parser.add_argument("--repeat", type=int, default=3, help="rounds of each column")
    parser.add_argument("--readers", type=int, default=1000, help="by server-sent events")
    parser.add_argument("--page", action="store_true", help="write docs/performance.md")
    return parser.parse_args()


def main() -> None:
    arguments = _arguments()
    peers, left_out = prepared(arguments.peers, PEERS)
    plan = Plan(arguments.seconds, arguments.repeat, arguments.readers)
    with scratch(arguments.dir) as folder:
        about = machine(folder)
        with started(peers, folder) as contenders:
            take("streams", turns(contenders, plan))
            measured = lines(contenders)
    result = new_result("bench.streams", about, measured, left_out)
    publish(result, arguments.json or RESULTS / "streams.json", show)
    if arguments.page:
        write_page(result)


if __name__ == "__main__":
    main()
