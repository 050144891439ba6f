"""How many rows and bytes the tables of one statement may still have."""

import pyarrow as pa

from queueber.errors import ResourceExhausted
from queueber.limits import MIB
from queueber.sql.select.bounds import SelectBounds

_ADVICE = {
    "topic": "add a WHERE on ts, offset or partition, or a LIMIT",
    "results": "add a WHERE on offset or batch, or a LIMIT",
    "queue": "add a WHERE on state or batch, or a LIMIT",
    "dead": "add a WHERE on batch, or a LIMIT",
}
_OTHER_ADVICE = "add a WHERE on the name of the queue or topic, or a LIMIT"


class Budget:
    def __init__(self, bounds: SelectBounds) -> None:
        self._bounds = bounds
        self._rows = 0
        self._bytes = 0

    def expect(self, rows: int, kind: str, subject: str) -> None:
        """Refuse so many rows before they are read."""
        if self._rows + rows > self._bounds.table_rows:
            raise self._refusal(f"at least {self._rows + rows} rows", kind, subject)

    def take(self, batch: pa.RecordBatch, kind: str, subject: str) -> None:
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows > self._bounds.table_rows:
            raise self._refusal(f"more than {self._bounds.table_rows} rows", kind, subject)
        if self._bytes > self._bounds.table_bytes:
            size = self._bounds.table_bytes // MIB
            raise self._refusal(f"more than {size} MiB", kind, subject)

    def _refusal(self, found: str, kind: str, subject: str) -> ResourceExhausted:
        what = f"{kind}({subject!r})" if subject else kind
        return ResourceExhausted(
            f"sql: the SELECT would read {found}, and has come to {what}; the limit is "
            f"{self._bounds.table_rows} rows and {self._bounds.table_bytes // MIB} MiB; "
            f"{_ADVICE.get(kind, _OTHER_ADVICE)}"
        )
