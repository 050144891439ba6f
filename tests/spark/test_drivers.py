"""The harness itself: drivers on both kinds of Spark, and nothing left of one that was killed."""

from pathlib import Path

import pytest

from tests.support.spark_driver import CLUSTER, running_driver


@pytest.mark.long
@pytest.mark.parametrize("master", [CLUSTER])
def test_driver_runs_tasks_and_nothing_is_left(tmp_path: Path, master: str) -> None:
    with running_driver("count_rows", folder=tmp_path, master=master) as driver:
        ended = driver.wait()
        driver.wait_left()

    assert ended.answer == {"rows": 1000, "tasks": 2}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_executors_of_a_killed_driver_end(tmp_path: Path) -> None:
    with running_driver("count_rows", "hold", folder=tmp_path, master=CLUSTER) as driver:
        driver.wait_line("holding")
        # The driver and its JVM, and two executors; more when Python runs below those.
        before = driver.processes()

        driver.kill()

        assert len(before) >= 4
        assert driver.processes() == {}
