"""All peers, by their names for `--peers` and in the order of the tables."""

from collections.abc import Mapping

from bench.peers.beanstalkd import Beanstalkd
from bench.peers.nats_jetstream import SYNCED, UNSYNCED
from bench.peers.ours import Queueber
from bench.peers.peer import Peer
from bench.peers.postgres_queue import PostgresQueue
from bench.peers.rabbitmq import RabbitMQ
from bench.peers.redis_streams import RedisStreams

PEERS: Mapping[str, Peer] = {
    "queueber": Queueber(),
    "redis": RedisStreams(),
    "postgres": PostgresQueue(),
    "beanstalkd": Beanstalkd(),
    "rabbitmq": RabbitMQ(),
    "nats-synced": SYNCED,
    "nats": UNSYNCED,
}
