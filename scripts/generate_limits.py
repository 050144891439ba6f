"""Write docs/limits.md from queueber/limits.py.

    python scripts/generate_limits.py            writes it
    python scripts/generate_limits.py --check    says whether it is current, and fails if it is not

A limit is a number at the top of the module, with the text below it as its reason. A text below
several limits that stand together is that of all of them. A comment `# --- Title ---` begins a
section.
"""

import ast
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from queueber import limits
from queueber.cli.output import to_duration

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "queueber" / "limits.py"
PAGE = ROOT / "docs" / "limits.md"

UNITS = {"KIB", "MIB", "SECOND_MS", "MINUTE_MS", "HOUR_MS", "DAY_MS"}
TITLE = re.compile(r"^# --- (.+?) -*$", re.MULTILINE)

HEAD = """# Limits

<!-- Generated from queueber/limits.py by scripts/generate_limits.py; edit that file instead. -->

Everything has a limit. What exceeds one gets an error that names the argument, what it was and the
limit, and nothing changes. These limits are the same for all servers; options of a server
([operations.md](operations.md)) and settings of a queue ([cli.md](cli.md#settings-of-a-queue))
stay within them.
"""


@dataclass(slots=True)
class Group:
    """Limits that stand together, and the reason below the last of them."""

    names: list[str]
    last_line: int
    reason: str = ""


@dataclass(slots=True)
class Section:
    title: str
    groups: list[Group] = field(default_factory=list)


def sections(source: str) -> list[Section]:
    """All limits of the module, in its order."""
    titles = [(source.count("\n", 0, each.start()) + 1, each[1]) for each in TITLE.finditer(source)]
    found: list[Section] = []
    for node in ast.parse(source).body:
        while titles and titles[0][0] < node.lineno:
            found.append(Section(titles.pop(0)[1]))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name not in UNITS:
                _add(found[-1].groups, name, node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and found:
            found[-1].groups[-1].reason = " ".join(str(node.value.value).split())
    return [each for each in found if each.groups]


def _add(groups: list[Group], name: str, node: ast.Assign) -> None:
    assert node.end_lineno is not None
    is_next = bool(groups) and groups[-1].last_line == node.lineno - 1 and not groups[-1].reason
    if is_next:
        groups[-1].names.append(name)
        groups[-1].last_line = node.end_lineno
    else:
        groups.append(Group([name], node.end_lineno))


def shown(name: str) -> str:
    """The value with its unit, which is in the name."""
    value = getattr(limits, name)
    if name.endswith(("_MS", "_MS_MAX", "_MS_MIN")):
        return to_duration(value)
    if "_SECONDS" in name:
        return f"{value:g} s"
    if "BYTES" in name.split("_"):
        for unit, word in ((limits.MIB, "MiB"), (limits.KIB, "KiB")):
            if value % unit == 0:
                return f"{value // unit:,} {word}"
        return f"{value:,} B"
    return f"{value:,}"


def page() -> str:
    """What docs/limits.md must hold."""
    lines = [HEAD]
    for section in sections(SOURCE.read_text()):
        lines += [f"## {section.title}", "", "| limit | | |", "| --- | ---: | --- |"]
        for group in section.groups:
            for at, name in enumerate(group.names):
                is_last = at == len(group.names) - 1
                lines.append(f"| `{name}` | {shown(name)} | {group.reason if is_last else ''} |")
        lines.append("")
    return "\n".join(lines).rstrip("\n").replace("|  |", "| |") + "\n"


def main() -> int:
    is_current = PAGE.exists() and PAGE.read_text() == page()
    if "--check" in sys.argv[1:]:
        if not is_current:
            sys.stdout.write(f"{PAGE.name}: not current; run scripts/generate_limits.py\n")
        return 0 if is_current else 1
    if not is_current:
        PAGE.write_text(page())
        sys.stdout.write(f"{PAGE.name}: written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
