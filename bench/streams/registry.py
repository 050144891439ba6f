"""All servers of streams, by their names for `--peers` and in the order of the tables."""

from collections.abc import Mapping

from bench.peers.peer import Program
from bench.streams.ours import QueueberStreams
from bench.streams.servers import NodeReference, NoServer, PrismaStreams, RustServer

PEERS: Mapping[str, Program] = {
    "queueber": QueueberStreams(1),
    "queueber-2": QueueberStreams(2),
    "node": NodeReference(),
    "prisma": PrismaStreams(),
    "rust": RustServer(),
    "none": NoServer(),
}
