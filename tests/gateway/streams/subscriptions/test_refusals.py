"""The page tells of every code, with its status."""

from queueber.gateway.streams.subscriptions.refusals import STATUSES
from tests.test_docs import table


def test_the_codes_are_those_of_the_page() -> None:
    listed = table("streams-subscriptions.md", "## Errors")

    assert {row[0]: int(row[1]) for row in listed} == STATUSES
