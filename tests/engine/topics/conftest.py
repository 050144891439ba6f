from collections.abc import Iterator

import pytest

from tests.support.topic_rig import TopicRig


@pytest.fixture
def rig() -> Iterator[TopicRig]:
    made = TopicRig(partitions=2)
    yield made
    made.close()
