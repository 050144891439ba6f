"""Bad records of the input: named by file and number, however Spark came upon them."""

import gzip
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from queueber.errors import InvalidArgument
from queueber.spark.jobs.bad_records import find_bad_record
from queueber.spark.jobs.jobs import enqueue
from queueber.spark.jobs.session import spark_session
from queueber.spark.jobs.settings import Input, SparkSettings
from tests.support.spark_sink import Sink

GOOD_JSON = '{"a": 1}\n'


def write(folder: Path, **files: str) -> Path:
    """Files by name, in a folder with a space in its name; returns the folder."""
    made = folder / "the input"
    made.mkdir()
    for name, text in files.items():
        (made / name).write_text(text)
    return made


def test_record_is_counted_in_its_own_file_and_without_blank_lines(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = write(tmp_path, one=GOOD_JSON * 5, two=f'{GOOD_JSON}\n{GOOD_JSON}{{"a":\n{GOOD_JSON}')

    told = find_bad_record(spark, Input([str(folder)], "json"))

    assert told == f"record 3 of file:{folder}/two cannot be read as json: '{{\"a\":'"


def test_line_of_names_of_a_csv_file_is_no_record(spark: SparkSession, tmp_path: Path) -> None:
    folder = write(tmp_path, one="a,b\n1,2\n3,4\n", two="a,b\n1,2\n3,4,5\n6,7\n")

    told = find_bad_record(spark, Input([str(folder)], "csv"))

    assert told == f"record 2 of file:{folder}/two cannot be read as csv: '3,4,5'"


def test_record_is_counted_over_all_blocks_of_a_file(spark: SparkSession, tmp_path: Path) -> None:
    lines = [GOOD_JSON] * 5000
    lines[4321] = "bad\n"
    folder = write(tmp_path, one="".join(lines))
    setting = "spark.sql.files.maxPartitionBytes"
    before = str(spark.conf.get(setting))
    spark.conf.set(setting, "4096")
    try:
        told = find_bad_record(spark, Input([str(folder)], "json"))
    finally:
        spark.conf.set(setting, before)

    assert told == f"record 4322 of file:{folder}/one cannot be read as json: 'bad'"


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"priority_column": "n"}, "priority_column: {} has 'x'; it must be a whole number"),
        ({"delay_column": "n"}, "delay_column: {} has 'x'; it must be a number of seconds"),
        ({"visible_at_column": "n"}, "visible_at_column: {} has 'x'; it must be a timestamp"),
        ({"attributes_column": "o"}, "attributes_column: {} has '{{'; it must be a JSON object"),
    ],
)
def test_value_that_cannot_be_converted_is_named_with_its_record(
    spark: SparkSession, tmp_path: Path, columns: dict[str, str], words: str
) -> None:
    folder = write(tmp_path, one="n|o\n2026|{}\n|{}\nx|{\n")

    given = Input([str(folder)], "csv", {"sep": "|"}, **columns)  # type: ignore[arg-type]  # by name
    told = find_bad_record(spark, given)

    assert told == words.format(f"record 3 of file:{folder}/one")


def test_file_of_another_format_has_only_bad_records(spark: SparkSession, tmp_path: Path) -> None:
    folder = write(tmp_path, one="a,b\n1,2\n")

    told = find_bad_record(spark, Input([str(folder)], "json"))

    assert told == f"record 1 of file:{folder}/one cannot be read as json: 'a,b'"


def test_good_input_has_no_bad_record(spark: SparkSession, tmp_path: Path) -> None:
    folder = write(tmp_path, one=GOOD_JSON)

    assert find_bad_record(spark, Input([str(folder)], "json")) is None
    assert find_bad_record(spark, Input([str(folder)], "text")) is None


def test_enqueue_names_the_record_and_adds_nothing(
    spark: SparkSession, sink: Sink, tmp_path: Path
) -> None:
    folder = write(tmp_path, one="a,b\n1,2\n", two="a,b\n1\n")
    target = {"address": sink.server.address, "queue": sink.queue.name}

    with pytest.raises(
        InvalidArgument, match=r"record 1 of file:.*/two cannot be read as csv: '1'"
    ):
        enqueue(spark, Input([str(folder)], "csv"), **target)

    sink.assert_untouched()


def test_enqueue_names_a_file_that_cannot_be_read_at_all(
    spark: SparkSession, sink: Sink, tmp_path: Path
) -> None:
    whole = gzip.compress(b"line\n" * 10_000)
    path = tmp_path / "cut.txt.gz"
    path.write_bytes(whole[: len(whole) // 2])

    with (
        pytest.raises(InvalidArgument, match=r"cannot read file:.*/cut\.txt\.gz in this format"),
        spark_session("test", SparkSettings()),
    ):
        enqueue(spark, Input([str(path)]), address=sink.server.address, queue=sink.queue.name)

    sink.assert_untouched()
