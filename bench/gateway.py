"""The gateway beside RPC, and beside the usual clients of RabbitMQ and NATS."""

from pathlib import Path
from statistics import median

from bench.measure import bench_parser, percentile_us, scratch, start_report
from bench.peers.comparison import prepared
from bench.peers.contest import started
from bench.peers.nats_jetstream import SYNCED, UNSYNCED
from bench.peers.order import Order, Tally
from bench.peers.ours import Queueber
from bench.peers.ours_http import QueueberHttp
from bench.peers.peer import Peer
from bench.peers.rabbitmq import RabbitMQ

_DESCRIPTION = """Measure adds of one item of 100 bytes from 32 callers: over HTTP through a gateway
of one process and of two, over RPC, and through the usual Python clients of RabbitMQ and NATS. All
servers run the whole time and are measured in turn. The callers share one process, which takes as
much processor time for HTTP as the gateway does."""

_PEERS: dict[str, Peer] = {
    "rpc": Queueber(),
    "http": QueueberHttp(1),
    "http-2": QueueberHttp(2),
    "rabbitmq": RabbitMQ(),
    "nats-synced": SYNCED,
    "nats": UNSYNCED,
}
_CALLERS, _BYTES = 32, 100


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a round")
    parser.add_argument("--repeat", type=int, default=3, help="rounds of each")
    parser.add_argument("--peers", default=",".join(_PEERS), help="which to measure")
    arguments = parser.parse_args()
    peers, _ = prepared([arguments.peers.split(",")], _PEERS)
    with scratch(arguments.dir) as folder:
        report = start_report("HTTP beside RPC and others: add 1 item", arguments, Path(folder))
        rounds: dict[str, list[Tally]] = {peer.name: [] for peer in peers}
        with started(peers, Path(folder)) as contenders:
            for _ in range(arguments.repeat + 1):  # the first one is to warm up
                for contender in contenders:
                    order = Order(
                        "add", contender.new_name(), _BYTES, callers=_CALLERS,
                        seconds=arguments.seconds,
                    )  # fmt: skip
                    rounds[contender.peer.name].append(contender.order(order))
    rows: list[dict[str, object]] = []
    for peer in peers:
        kept = rounds[peer.name][1:]
        samples = [sample for tally in kept for sample in tally.samples_ns]
        rows.append(
            {
                "through": peer.name,
                "synced": peer.durability,
                "items/s": round(median(tally.items_per_second for tally in kept)),
                "p50 ms": round(percentile_us(samples, 0.5) / 1000, 1),
                "p99 ms": round(percentile_us(samples, 0.99) / 1000, 1),
            }
        )
    report.table(f"add 1 item of {_BYTES} bytes, {_CALLERS} callers", rows)


if __name__ == "__main__":
    main()
