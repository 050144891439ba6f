"""Apache Kafka from its published jars: one broker, which is its own controller.

The jars are fetched once and kept below `.bench`. Ivy, which comes with pyspark, fetches them by
name and checks them against their published checksums.
"""

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

from bench.peers.go_programs import PROGRAMS
from bench.peers.peer import Server, Unavailable
from bench.peers.processes import (
    LOOPBACK,
    data_folder,
    free_ports,
    port_answers,
    process_ids,
    running_process,
)

VERSION = "4.3.1"
_SCALA = "2.13"
_FETCH_SECONDS_MAX = 300.0
_FORMAT_SECONDS_MAX = 60.0
_HEAP = "-Xmx256m"
_REASON_CHARACTERS_MAX = 300


@dataclass
class KafkaServer:
    name: str
    durability: str
    notes: str
    is_synced: bool
    library: str = "confluent-kafka"
    packages: Sequence[str] = ()

    def version(self) -> str:
        _find_or_fetch()
        return VERSION

    @contextlib.contextmanager
    def running(self, folder: Path) -> Iterator[Server]:
        port, controller_port = free_ports(2)
        java = [_java(), _HEAP, "-cp", f"{_find_or_fetch()}/*"]
        with data_folder(folder, "kafka") as data_dir:
            settings = data_dir / "server.properties"
            settings.write_text(self._settings(port, controller_port, data_dir / "log"))
            _format(java, settings)
            with running_process(
                [*java, "kafka.Kafka", str(settings)], data_dir, lambda: port_answers(port)
            ) as root:
                yield Server(f"{LOOPBACK}:{port}", lambda: process_ids(root))

    def _settings(self, port: int, controller_port: int, log_dir: Path) -> str:
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller_port}",
            "log.dirs": str(log_dir),
            "auto.create.topics.enable": "false",
            # One broker has no other to copy to.
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "file.delete.delay.ms": "1000",
        }
        if self.is_synced:
            # Each append is synced before its answer; by default the system does that at leisure.
            settings["log.flush.interval.messages"] = "1"
        return "".join(f"{name}={value}\n" for name, value in settings.items())


def are_jars_here() -> bool:
    return _folder().is_dir()


def _folder() -> Path:
    return PROGRAMS / f"kafka-{VERSION}"


def _java() -> str:
    java = shutil.which("java")
    if java is None:
        raise Unavailable("Kafka needs Java, which is missing")
    return java


def _find_or_fetch() -> Path:
    if are_jars_here():
        return _folder()
    pyspark = find_spec("pyspark")
    found = [
        jar
        for place in (pyspark.submodule_search_locations or () if pyspark else ())
        for jar in (Path(place) / "jars").glob("ivy-*.jar")
    ]
    if not found:
        raise Unavailable("Kafka's jars are fetched with the Ivy of pyspark, which is missing")
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PROGRAMS) as path:
        jars = Path(path) / "jars"
        _run(
            [
                _java(), _HEAP, "-jar", str(found[0]), "-cache", f"{path}/cache",
                "-dependency", "org.apache.kafka", f"kafka_{_SCALA}", VERSION,
                "-confs", "default", "-types", "jar", "bundle",
                "-retrieve", f"{jars}/[artifact]-[revision].[ext]",
            ],
            f"fetching Kafka {VERSION}", _FETCH_SECONDS_MAX,
        )  # fmt: skip
        if not list(jars.glob(f"kafka_{_SCALA}-{VERSION}.jar")):
            raise Unavailable(f"Ivy found no Kafka {VERSION}")
        return jars.rename(_folder())


def _format(java: Sequence[str], settings: Path) -> None:
    """Prepare the directory of a new broker."""
    cluster = uuid4().hex[:22]
    command = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)]
    _run(command, "preparing Kafka's directory", _FORMAT_SECONDS_MAX)


def _run(command: Sequence[str], what: str, seconds_max: float) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=seconds_max)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{what} took longer than {seconds_max:.0f} s") from None
    except subprocess.CalledProcessError as error:
        told = (error.stderr.strip() or error.stdout.strip()).splitlines() or ["no reason given"]
        raise Unavailable(f"{what} failed ({told[-1][:_REASON_CHARACTERS_MAX]})") from None
