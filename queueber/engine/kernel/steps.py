"""Steps: long work is split, and the server answers other calls between two steps."""

from collections.abc import Generator
from enum import Enum
from typing import TypeVar

T = TypeVar("T")


class Step(Enum):
    """What the server does before the work goes on."""

    TURN = "answer other calls"
    SYNC = "make durable what was written"


Steps = Generator[Step, None, T]
