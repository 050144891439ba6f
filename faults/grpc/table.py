"""The table of docs/reliability.md: what each attack on the gRPC port does, and did."""

from collections.abc import Iterable, Mapping
from functools import partial
from math import isinf
from pathlib import Path

from faults.http.judge import Verdict
from faults.http.task import Attack

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
_BEGIN, _END = "<!-- {}: written with --page -->\n", "<!-- end of {} -->\n"
_HEAD = ("attack", "what it does", "before, ms", "during, ms", "memory, MB")


def name_of(*, has_tls: bool) -> str:
    """Of one of the two tables."""
    return "faults.grpc --tls" if has_tls else "faults.grpc"


def better_of(tries: Iterable[Verdict]) -> Verdict:
    """The first try that is within the limits, or else the one that harmed others least."""
    found: list[Verdict] = []
    for each in tries:
        if not each.wrong:
            return each
        found.append(each)
    return min(found, key=lambda each: each.harmed_ms)


def rendered(attacks: Mapping[str, Attack], verdicts: Iterable[Verdict]) -> str:
    rows = [_HEAD, ("---",) * len(_HEAD), *(_row(attacks[each.name], each) for each in verdicts)]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def _row(attack: Attack, verdict: Verdict) -> tuple[str, ...]:
    during = f"{verdict.harmed_ms:.1f}"
    return (
        verdict.name,
        purpose(attack),
        "nothing was answered" if isinf(verdict.quiet_ms) else f"{verdict.quiet_ms:.1f}",
        f"**{during}** ({verdict.wrong})" if verdict.wrong else during,
        f"{verdict.most_mb:.0f}",
    )


def purpose(attack: Attack) -> str:
    """The first sentence about an attack, as a part of one."""
    of = attack.args[0] if isinstance(attack, partial) else attack
    first = " ".join((of.__doc__ or "").split()).split(". ")[0].rstrip(".")
    return first[:1].lower() + first[1:]


def between(text: str, name: str) -> tuple[str, str, str]:
    """What is before a table of the page, the table, and what is after it."""
    before, rest = text.split(_BEGIN.format(name))
    table, after = rest.split(_END.format(name))
    return before, table, after


def write(name: str, table: str) -> None:
    before, _, after = between(PAGE.read_text(), name)
    PAGE.write_text(before + _BEGIN.format(name) + table + _END.format(name) + after)
