"""The examples of the pages below, which start Spark, print what the pages show.

They run one after the other on one Java machine, and the processes of Python that Spark starts are
forks of one that has imported it: otherwise this takes two minutes.
"""

from pathlib import Path

import pytest

from queueber.testing import running_server
from tests.support.examples import Examples
from tests.support.spark_driver import WARM, why_no_spark
from tests.support.spark_gateway import spark_gateway
from tests.support.warm import warm_programs

ROOT = Path(__file__).parent.parent
PAGES = ["docs/spark.md", "docs/how-to/spark-fan-out.md"]

SECONDS_MAX = 240.0
"""Of an example, some of which start Spark more than once, on a machine that is busy."""


@pytest.mark.slow
@pytest.mark.spark
def test_examples_print_what_the_pages_show(tmp_path: Path) -> None:
    if reason := why_no_spark():
        pytest.skip(reason)
    with (
        warm_programs(*WARM) as programs,
        running_server() as server,
        spark_gateway(tmp_path, programs / "python") as (environment, stop),
    ):
        examples = Examples(programs, server.address, tmp_path, environment, stop, SECONDS_MAX)
        for page in PAGES:
            examples.check_page((ROOT / page).read_text())
