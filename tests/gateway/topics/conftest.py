"""Each test has a topic of its own."""

from itertools import count

import pytest

_numbers = count()


@pytest.fixture
def topic() -> str:
    """The path of a topic that no other test has, whose name has a slash."""
    return f"/v1/topics/t%2F{next(_numbers)}"
