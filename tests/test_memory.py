"""Memory of a process that serves: large answers reuse the pages of earlier ones."""

import subprocess
import sys

_PROGRAM = """
import gc, resource
from queueber.memory import collect_seldom, keep_freed_memory

keep_freed_memory()
collect_seldom()

def answer():
    pieces = [bytes(range(256)) * 8192 for _ in range(2)]
    return len(b"".join(pieces))

answer()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    answer()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(gc.get_threshold()[0], gc.get_freeze_count() > 0)
"""
_PAGES_OF_AN_ANSWER = 2048


def test_large_answers_reuse_the_pages_of_earlier_ones() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], check=True, capture_output=True, text=True
    )

    faults, collector = done.stdout.splitlines()
    assert int(faults) < _PAGES_OF_AN_ANSWER  # 50 answers without it: 100,000
    assert collector == "50000 True"
