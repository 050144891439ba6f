"""Each test has a topic of its own."""

from itertools import count

import pytest

_numbers = count()


@pytest.fixture
def topic() -> str:
    """The name of a topic that no other test has."""
    return f"app.t{next(_numbers)}"
