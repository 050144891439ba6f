"""A cluster as `local-cluster[2,1,1024]`, but whose executors are on hosts of different names.

Spark runs a second attempt beside the first one only on another host, so that nobody can see
speculation on a local cluster.
"""

from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

HOSTS = ("127.0.0.1", "127.0.0.2")
"""All of 127.0.0.0/8 is this machine."""


def start_on_two_hosts(folder: Path) -> SparkSession:
    """Master and workers live in the driver's JVM and end with it, as those of a local cluster."""
    SparkContext._ensure_initialized()
    jvm = SparkContext._jvm
    assert jvm is not None
    assert SparkContext._gateway is not None
    deploy, conf = jvm.org.apache.spark.deploy, jvm.org.apache.spark.SparkConf()
    master = deploy.master.Master.startRpcEnvAndEndpoint(HOSTS[0], 0, 0, conf)
    masters = SparkContext._gateway.new_array(jvm.java.lang.String, 1)
    masters[0] = f"spark://{HOSTS[0]}:{master._1().address().port()}"
    nothing = jvm.scala.Option.empty()
    for number, host in enumerate(HOSTS):
        deploy.worker.Worker.startRpcEnvAndEndpoint(
            host, 0, 0, 1, 1024, masters, str(folder), jvm.scala.Option.apply(number), conf, nothing
        )
    return SparkSession.builder.master(masters[0]).getOrCreate()
