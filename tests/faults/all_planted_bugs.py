"""All planted bugs, and the history that finds each."""

import json
from itertools import chain
from pathlib import Path

from faults.simulation.world import simulate
from tests.faults.planted_bugs import BUGS, Bug
from tests.faults.planted_flow_bugs import FLOW_BUGS
from tests.faults.planted_route_bugs import ROUTE_BUGS
from tests.faults.planted_schedule_bugs import SCHEDULE_BUGS
from tests.faults.planted_topic_bugs import TOPIC_BUGS

ALL_BUGS: tuple[Bug, ...] = (*BUGS, *TOPIC_BUGS, *ROUTE_BUGS, *SCHEDULE_BUGS, *FLOW_BUGS)
SEEDS_FILE = Path(__file__).with_name("seeds.json")
"""By bug, the first seed that found it when `scripts/record_seeds.py` was run."""

_HISTORIES_MAX = 3000


def recorded_seeds() -> dict[str, int]:
    found: dict[str, int] = json.loads(SEEDS_FILE.read_text())
    return found


def finding_seed(bug: Bug, recorded: dict[str, int]) -> int | None:
    """The seed of a history in which a bug, which is planted, does something wrong.

    A recorded one is tried first, and the others in order: a change of the simulation changes what
    a seed does, and the bug must still be found.
    """
    known = [recorded[bug.__name__]] if bug.__name__ in recorded else []
    seeds = chain(known, range(_HISTORIES_MAX))
    return next((seed for seed in seeds if simulate(seed).wrong), None)
