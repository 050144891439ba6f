"""The table of families, and the format that rests on it."""

from queueber.db.families import (
    GROUP_FAMILIES,
    LOG_FAMILIES,
    QUEUE_FAMILIES,
    TOPIC_FAMILIES,
    Family,
)


def test_families_have_the_names_that_are_on_disk() -> None:
    """A renamed family would be created anew, empty, beside the old one."""
    assert [family.family_name for family in Family] == [
        "default",
        "queues",
        "counters",
        "items",
        "leftovers",
        "visibility_index",
        "delayed",
        "places",
        "dead",
        "leases",
        "lease_expiry",
        "holders",
        "attempts",
        "item_options",
        "item_expiry",
        "keys",
        "producers",
        "batches",
        "batch_names",
        "forget",
        "loads",
        "logs",
        "log_blocks",
        "topics",
        "topic_names",
        "groups",
        "schemas",
        "routes",
        "schedules",
        "callbacks",
        "waits",
        "waited_for",
        "cap_keys",
        "parked",
        "cap_due",
        "positions",
        "last_of_key",
        "replaced",
        "agenda",
    ]


def test_every_family_belongs_to_queues_groups_topics_or_logs_or_to_the_whole_store() -> None:
    of_all = {Family.DEFAULT, Family.TOPIC_NAMES, Family.AGENDA}
    families = {*QUEUE_FAMILIES, *GROUP_FAMILIES, *TOPIC_FAMILIES, *LOG_FAMILIES}
    assert families == set(Family) - of_all
    # A log is known by its queue's number.
    assert all(family.key_parts.startswith(("queue", "log")) for family in QUEUE_FAMILIES)
