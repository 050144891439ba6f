"""All peers of topics, by their names for `--peers` and in the order of the tables."""

from collections.abc import Mapping

from bench.topics import kafka, nats_topics
from bench.topics.ours import QueueberTopics
from bench.topics.peer import TopicPeer
from bench.topics.rabbitmq_streams import RabbitMQStreams
from bench.topics.redis_topics import RedisTopics

PEERS: Mapping[str, TopicPeer] = {
    "queueber": QueueberTopics(),
    "redis": RedisTopics(),
    "nats-synced": nats_topics.SYNCED,
    "kafka-synced": kafka.SYNCED,
    "nats": nats_topics.UNSYNCED,
    "kafka": kafka.UNSYNCED,
    "rabbitmq": RabbitMQStreams(),
}
