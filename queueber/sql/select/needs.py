"""What a statement needs of one table: which columns, and which rows at most.

The engine makes these from the statement, and readers of tables keep to them. A reader may always
read more than is needed: the engine applies every condition itself.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class Need:
    table: str
    """The name under which the engine knows it."""
    kind: str
    """Such as `topic` or `system.topics`."""
    subject: str
    """The name of the queue or topic; empty for tables of the system."""
    columns: tuple[str, ...]
    """Those that the statement uses."""
    equal: dict[str, tuple[str | int, ...]] = field(default_factory=dict)
    """For a column the values that rows must have one of."""
    least: dict[str, int] = field(default_factory=dict)
    """For a column the smallest value that is needed; times are microseconds since 1970."""
    most: dict[str, int] = field(default_factory=dict)
    rows: int | None = None
    """As many rows are enough: the first, or those with the greatest offsets."""
    is_each: bool = False
    """Whether `rows` is meant for each partition, because the statement orders them."""
    is_last: bool = False

    def texts(self, column: str) -> set[str] | None:
        """The texts that a column must have one of; None: any."""
        wanted = self.equal.get(column)
        return None if wanted is None else {each for each in wanted if isinstance(each, str)}

    def numbers(self, column: str) -> set[int] | None:
        wanted = self.equal.get(column)
        return None if wanted is None else {each for each in wanted if isinstance(each, int)}


def pack_needs(needs: Sequence[Need]) -> bytes:
    return json.dumps([asdict(each) for each in needs]).encode()


def read_needs(packed: bytes | bytearray) -> list[Need]:
    return [
        Need(
            **{
                **each,
                "columns": tuple(each["columns"]),
                "equal": {name: tuple(values) for name, values in each["equal"].items()},
            }
        )
        for each in json.loads(packed)
    ]
