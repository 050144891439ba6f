"""What a benchmark writes into docs/performance.md: tables and verdicts, between two marks."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.measure import Report
from bench.peers.tables import PAGE, joined, replace_between, table

_UNIMPORTANT = ("load",)


def write_tables(
    part: str, module: str, report: Report, titles: Sequence[str], *, page: Path = PAGE
) -> None:
    """Replace a part of the page with tables of the report, and its verdicts."""
    replace_between(page, *marks(part, module), _rendered(module, report, titles))


def marks(part: str, module: str) -> tuple[str, str]:
    return (
        f"<!-- {part}: written by python -m bench.{module} --page -->\n",
        f"<!-- end of {part} -->\n",
    )


def _rendered(module: str, report: Report, titles: Sequence[str]) -> str:
    taken = datetime.now(UTC).isoformat(timespec="minutes")
    facts = ", ".join(
        f"{name} {value}" for name, value in report.facts.items() if name not in _UNIMPORTANT
    )
    commit = report.parameters.get("commit")
    against = f", against the commit {commit}" if commit else ""
    parts = [f"Taken {taken} with `python -m bench.{module} --page`{against}; {facts}."]
    for title in titles:
        rows = report.tables[title]
        cells = [[_cell(value) for value in row.values()] for row in rows]
        parts += [f"{title}:", table([*rows[0]], cells)]
    held = [
        f"- {'Held' if is_met else '**Missed**'}: {claim}."
        for claim, is_met in report.verdicts.items()
    ]
    return joined([*parts, "\n".join(held)] if held else parts)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
