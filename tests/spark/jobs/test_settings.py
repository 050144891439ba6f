"""The format of input files, by their names; a wrong name is refused before Spark starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from queueber.errors import InvalidArgument
from queueber.spark.jobs.settings import format_of
from tests.support.spark_driver import ROOT


@pytest.mark.parametrize(
    ("path", "format_name"),
    [
        ("a.parquet", "parquet"),
        ("folder.parquet/", "parquet"),
        ("s3a://bucket/part-*.snappy.parquet", "parquet"),
        ("a.JSON", "json"),
        ("a.jsonl", "json"),
        ("logs/*.ndjson.gz", "json"),
        ("a.csv.bz2", "csv"),
        ("a.txt", "text"),
        ("a.log", "text"),
    ],
)
def test_format_is_as_the_name_ends(path: str, format_name: str) -> None:
    assert format_of([path]) == format_name


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        (["a.csv", "folder"], "'folder' does not end in a known suffix"),
        (["a.gz"], "'a.gz' does not end in a known suffix"),
        (["a.csv", "b.json"], "the input is csv and json"),
    ],
)
def test_format_that_the_names_do_not_tell_is_refused(paths: list[str], words: str) -> None:
    with pytest.raises(InvalidArgument, match=f"format: {words}"):
        format_of(paths)


def test_unknown_suffix_is_refused_before_pyspark_is_imported(tmp_path: Path) -> None:
    """Nothing answers at the address, and there is no Java: neither is asked for."""
    asks = "import sys; sys.argv[1:] = ['spark', 'enqueue', 'a.xml', '--address', '127.0.0.1:1']"
    runs = "from queueber.cli import main; import atexit"
    tells = "atexit.register(lambda: print('pyspark' in sys.modules)); main()"

    ended = subprocess.run(
        [sys.executable, "-c", f"{asks}; {runs}; {tells}"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (ended.returncode, ended.stdout) == (2, "False\n")
    assert "--format: 'a.xml' does not end in a known suffix" in ended.stderr
