from collections.abc import Iterator

import pytest

from tests.support.rig import Rig


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    made.close()
