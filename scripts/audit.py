"""Known holes in what constraints.txt pins, as pip-audit finds them: it asks the network.

Ends with 1 when there are any, and with 2 when it could not be found out.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CONSTRAINTS = Path(__file__).parent.parent / "constraints.txt"
FOUND, NOT_AUDITED = 1, 2


def ask() -> tuple[list[dict[str, Any]], str]:
    """What is known of each package, and what pip-audit complained of."""
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
    packages, complaints = ask()
    holes = [(each, hole) for each in packages for hole in each.get("vulns", ())]
    for package, hole in holes:
        fixed = ", ".join(hole["fix_versions"]) or "no version"
        sys.stdout.write(
            f"{package['name']} {package['version']}: {hole['id']}, fixed in {fixed}\n"
        )
    # pip-audit is content when the network knows none of the packages.
    skipped = [each["name"] for each in packages if "skip_reason" in each]
    if skipped or not packages:
        last = (complaints.strip().splitlines() or [""])[-1]
        sys.stdout.write(
            f"not audited, as the network is needed and does not answer: "
            f"{f'{len(skipped)} of {len(packages)} packages' if packages else last}\n"
        )
    else:
        sys.stdout.write(f"{len(packages)} packages, {len(holes)} known holes\n")
    return FOUND if holes else NOT_AUDITED if skipped or not packages else 0


if __name__ == "__main__":
    sys.exit(main())
