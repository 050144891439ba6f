"""Known vulnerabilities of the versions in constraints.txt. pip-audit asks the network for them.

Ends with 1 if there are any, and with 2 if the network does not answer.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CONSTRAINTS = Path(__file__).parent.parent / "constraints.txt"
FOUND, NOT_AUDITED = 1, 2


def ask() -> tuple[list[dict[str, Any]], str]:
    """What pip-audit found for each package, and its error output."""
    asked = subprocess.run(
        [
            sys.executable, "-m", "pip_audit", "--requirement", str(CONSTRAINTS),
            "--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    try:
        return json.loads(asked.stdout)["dependencies"], asked.stderr
    except ValueError:
        return [], asked.stderr


def main() -> int:
    packages, errors = ask()
    found = [(each, known) for each in packages for known in each.get("vulns", ())]
    for package, known in found:
        fixed = ", ".join(known["fix_versions"]) or "no version"
        sys.stdout.write(
            f"{package['name']} {package['version']}: {known['id']}, fixed in {fixed}\n"
        )
    # pip-audit reports success when the network knows none of the packages.
    skipped = [each["name"] for each in packages if "skip_reason" in each]
    if skipped or not packages:
        last = (errors.strip().splitlines() or [""])[-1]
        sys.stdout.write(
            f"not audited, because the network does not answer: "
            f"{f'{len(skipped)} of {len(packages)} packages' if packages else last}\n"
        )
    else:
        sys.stdout.write(f"{len(packages)} packages, {len(found)} known vulnerabilities\n")
    return FOUND if found else NOT_AUDITED if skipped or not packages else 0


if __name__ == "__main__":
    sys.exit(main())
