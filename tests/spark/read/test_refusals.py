"""What is wrong with a read is told on the driver, before any task runs, by the option's name."""

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession

import queueber
from queueber.client.transport.identity import Token, TokenFile
from queueber.errors import InvalidArgument
from queueber.spark.options import ReadOptions, read_options, write_options
from queueber.spark.topic_options import topic_read_options, topic_write_options
from queueber.testing import ServerProcess
from queueber.tls import TlsOptions

GOOD = {"queue": "q"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "option 'queue' is missing"),
        ({"queue": ""}, "option 'queue' is missing"),
        ({**GOOD, "que": "x"}, "option 'que' is not one of this source; it has address, queue,"),
        ({**GOOD, "address": "nowhere"}, "option 'address': 'nowhere' is not host:port"),
        ({**GOOD, "tls": "yes"}, "option 'tls': 'yes' is none of true, false"),
        ({**GOOD, "tls": "false", "tlsCa": "/ca"}, "option 'tlsCa' needs the option 'tls' to be"),
        ({**GOOD, "token": "t", "tokenFile": "/t"}, "option 'tokenFile': there is 'token' too"),
        ({**GOOD, "tlsKey": "/key"}, "option 'tlsKey': there is no certificate for it"),
        ({**GOOD, "batch": ""}, "option 'batch': it is empty"),
        ({**GOOD, "batch": "b" * 257}, "option 'batch': it has 257 bytes; the limit is 256"),
        ({**GOOD, "table": "leases"}, "option 'table': 'leases' is none of results, items"),
        ({**GOOD, "status": "lost"}, "option 'status': 'lost' is none of done, dead"),
        ({**GOOD, "table": "items", "status": "done"}, "option 'status' is of the table 'results'"),
        ({**GOOD, "splits": "0"}, "option 'splits': '0' is not a number from 1 to 10000"),
        ({**GOOD, "splits": "many"}, "option 'splits': 'many' is not a number"),
        ({**GOOD, "push_filters": "yes"}, "option 'push_filters': 'yes' is none of true, false"),
        ({**GOOD, "method": "rpc"}, "option 'method' is for writing only"),
        ({**GOOD, "mode": "rpc"}, r"option 'mode': .* 'method' .* \.mode\("),
        ({**GOOD, "reader": "r"}, "option 'reader' is for streaming reads only"),
        ({**GOOD, "max_rows": "5"}, "option 'max_rows' is for streaming reads only"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{told}"):
        read_options(options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"start": "middle"}, "option 'start': 'middle' is none of earliest, latest"),
        ({"max_rows": "-1"}, "option 'max_rows': '-1' is not a number from 1"),
        ({"table": "items"}, "option 'table': only 'results' can be read as a stream"),
        ({"status": "dead"}, "option 'status': a stream brings what is done"),
        ({"reader": ""}, "option 'reader': it is empty"),
    ],
)
def test_wrong_options_of_a_stream_are_named(options: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{told}"):
        read_options({**GOOD, **options}, is_streaming=True)


def test_options_are_read_whatever_their_case_and_beside_those_of_spark() -> None:
    read = read_options({"QUEUE": "q", "Status": "DEAD", "checkpointLocation": "/c"})

    assert read == ReadOptions("127.0.0.1:9090", "q", None, statuses=("dead",))


@pytest.mark.parametrize(
    ("options", "tls"),
    [
        ({}, None),
        ({"tls": "false"}, None),
        ({"TLS": "True"}, TlsOptions()),
        ({"tlsca": "/ca"}, TlsOptions(ca="/ca")),
        (
            {"tls": "true", "tlsCertificate": "/c", "tlsKey": "/k"},
            TlsOptions(certificate="/c", key="/k"),
        ),
    ],
)
def test_files_of_tls_are_options_of_queues_and_of_topics(
    options: dict[str, str], tls: TlsOptions | None
) -> None:
    assert read_options({**GOOD, **options}).tls == tls
    assert write_options({**GOOD, **options}).tls == tls
    assert topic_read_options({"topic": "t", **options}).tls == tls
    assert topic_write_options({"topic": "t", **options}).tls == tls


def refusal(spark: SparkSession, schema: str | None = None, **options: str) -> str:
    reading = spark.read.format("queueber").options(**options)
    reading = reading.schema(schema) if schema else reading
    with pytest.raises(AnalysisException) as refused:
        reading.load().collect()
    return str(refused.value)


def test_missing_queue_and_unknown_option_are_told_by_load_itself(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="option 'queue' is missing"):
        spark.read.format("queueber").load()
    with pytest.raises(AnalysisException, match="option 'colour' is not one of this source"):
        spark.read.format("queueber").option("queue", "q").option("colour", "red").load()


def test_unreachable_server_is_told_with_its_address(spark: SparkSession) -> None:
    told = refusal(spark, queue="q", address="127.0.0.1:1")

    assert "option 'address': no server answers at 127.0.0.1:1; start one" in told


def test_unknown_queue_is_told_and_not_created(
    spark: SparkSession, server: ServerProcess, client: queueber.Client
) -> None:
    told = refusal(spark, queue="missing", address=server.address)

    assert "option 'queue': there is no queue 'missing'" in told
    assert "missing" not in [stats.name for stats in client.queues()]


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("id string, colour string", "column 'colour' is not one of the table 'results'"),
        ("id int", "column 'id' is string, not int"),
        ("attributes map<string,int>", "column 'attributes' is map<string,string>, not map"),
    ],
)
def test_columns_that_are_not_there_are_named(
    spark: SparkSession, server: ServerProcess, schema: str, told: str
) -> None:
    assert told in refusal(spark, schema, queue="default", address=server.address)


def test_stream_of_an_unknown_queue_is_told_when_it_starts(
    spark: SparkSession, server: ServerProcess, tmp_path: Path
) -> None:
    reading = spark.readStream.format("queueber").option("address", server.address)
    writing = reading.option("queue", "missing").load().writeStream.format("noop")

    with pytest.raises(StreamingQueryException, match="option 'queue': there is no queue"):
        writing.option("checkpointLocation", str(tmp_path)).start().awaitTermination()


@pytest.mark.parametrize(
    ("options", "token"),
    [({}, None), ({"token": "t"}, "t"), ({"tokenFile": "/t"}, TokenFile(Path("/t")))],
)
def test_a_token_is_an_option_of_queues_and_of_topics_and_is_not_shown(
    options: dict[str, str], token: Token | None
) -> None:
    of_queue = read_options({"queue": "q", **options})
    of_topic = topic_read_options({"topic": "t", **options})

    assert of_queue.token == of_topic.token == token
    assert "token" not in repr(of_queue) + repr(of_topic)
