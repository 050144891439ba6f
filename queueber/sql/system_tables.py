"""The tables that queries know, by name."""

SYSTEM_TABLES = (
    "system.topics",
    "system.topic_offsets",
    "system.queues",
    "system.leases",
    "system.batches",
    "system.dead_letters",
)
