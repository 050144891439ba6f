"""Write tests/faults/seeds.json: for each planted bug, the first history that finds it.

    python scripts/record_seeds.py           searches for those whose seed is stale
    python scripts/record_seeds.py --anew    searches for all of them

Run it after a change of the simulation: the draws of a seed are others then, and a test whose seed
is stale searches for seconds.
"""

import json
import multiprocessing
import sys

import pytest

from faults.simulation.quiet import quiet_logs
from faults.simulation.small_limits import small_limits
from tests.faults.all_planted_bugs import (
    ALL_BUGS,
    SEEDS_FILE,
    finding_seed,
    recorded_seeds,
)


def seed_of(number: int, is_anew: bool) -> int | None:
    """In a process of its own: a bug stays planted."""
    bug = ALL_BUGS[number]
    with pytest.MonkeyPatch.context() as patch, quiet_logs(), small_limits():
        bug(patch)
        return finding_seed(bug, {} if is_anew else recorded_seeds())


def main() -> None:
    count = len(ALL_BUGS)
    spawn = multiprocessing.get_context("spawn")
    # Not an executor: one of Python 3.11 hangs once its processes have had their tasks.
    with spawn.Pool(maxtasksperchild=8) as pool:
        tasks = [(number, "--anew" in sys.argv) for number in range(count)]
        seeds = pool.starmap(seed_of, tasks, chunksize=1)
    found = {
        bug.__name__: seed for bug, seed in zip(ALL_BUGS, seeds, strict=True) if seed is not None
    }
    SEEDS_FILE.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
