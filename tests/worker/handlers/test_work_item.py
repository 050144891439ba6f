"""The item that a handler gets."""

from queueber.client import Item
from queueber.worker.handlers.work_item import HeldLease, WorkItem
from queueber.worker.progress import logged_ids


def work_item(number: int = 1) -> WorkItem:
    item = Item(bytes([number]) * 16, b"x", 2, "key", {"size": "3"}, "batch")
    return WorkItem(item, HeldLease(b"l" * 16, 1, 0.0))


def test_a_work_item_has_all_that_the_item_has() -> None:
    item = work_item()

    assert (item.id, item.contents, item.attempt) == (b"\x01" * 16, b"x", 2)
    assert (item.key, item.attributes, item.batch) == ("key", {"size": "3"}, "batch")


def test_value_is_an_attribute_like_any_other() -> None:
    """Items are not frozen, so nothing has to go around `__setattr__`."""
    item = work_item()

    item.value = 3

    assert (item.value, item.contents) == (3, b"x")
    assert not hasattr(item, "set_value")


def test_the_same_item_under_two_leases_is_two_work_items() -> None:
    assert len({work_item(), work_item()}) == 2


def test_a_log_line_has_at_most_twenty_ids() -> None:
    assert logged_ids([work_item(2)]) == ["02" * 16]
    assert len(logged_ids([work_item()] * 100)) == 20
