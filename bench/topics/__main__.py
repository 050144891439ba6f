"""`python -m bench.topics`: compares topics of Queueber with those of others in one run."""

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
from bench.topics.contest import Plan, started, turns
from bench.topics.page import show, write_page
from bench.topics.registry import PEERS

_DESCRIPTION = """Compare topics of Queueber with those of others: all servers run the whole time on
loopback, each is called through its usual Python client from its own process, and they are measured
in turn. Missing Debian packages of the peers are installed if the user may, a newer NATS is built
if Go is at hand, and Kafka's jars are fetched. The result goes to bench/results/ and, with --page,
into docs/performance.md."""


def _arguments() -> argparse.Namespace:
    parser = bench_parser(_DESCRIPTION)
    add_peers_option(parser, PEERS)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a round of one column")
    parser.add_argument("--repeat", type=int, default=3, help="rounds of each column")
    parser.add_argument("--page", action="store_true", help="write docs/performance.md")
    return parser.parse_args()


def main() -> None:
    arguments = _arguments()
    peers, left_out = prepared(arguments.peers, PEERS)
    plan = Plan(arguments.seconds, arguments.repeat)
    with scratch(arguments.dir) as folder:
        about = machine(folder)
        with started(peers, folder) as contenders:
            take("topics", turns(contenders, plan))
            measured = lines(contenders)
    result = new_result("bench.topics", about, measured, left_out)
    publish(result, arguments.json or RESULTS / "topics.json", show)
    if arguments.page:
        write_page(result)


if __name__ == "__main__":
    main()
