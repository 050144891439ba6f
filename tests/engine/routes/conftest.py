from collections.abc import Iterator

import pytest

from queueber.model import QueueSettings
from tests.support.route_rig import RouteRig


@pytest.fixture
def rig() -> Iterator[RouteRig]:
    made = RouteRig(QueueSettings(attempts_max=2, backoff_ms=(50,), dedup_window_ms=60_000))
    yield made
    made.close()
