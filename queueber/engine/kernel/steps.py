"""Steps: work that is too long for one turn is done a step at a time, with others served between."""

from collections.abc import Generator
from enum import Enum
from typing import TypeVar

T = TypeVar("T")


class Step(Enum):
    """What is to happen before the work goes on."""

    TURN = "let others have a turn"
    SYNC = "make durable what was written"


Steps = Generator[Step, None, T]
