"""The table of families, and the format that rests on it."""

from queueber.db.families import QUEUE_FAMILIES, Family


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
        "keys",
        "producers",
        "batches",
        "batch_names",
        "forget",
        "loads",
        "logs",
        "log_blocks",
    ]


def test_every_family_but_the_default_belongs_to_queues() -> None:
    assert set(QUEUE_FAMILIES) == set(Family) - {Family.DEFAULT}
    # A log is known by its queue's number.
    assert all(family.key_parts.startswith(("queue", "log")) for family in QUEUE_FAMILIES)
