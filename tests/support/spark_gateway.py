"""One Java machine for Spark programs that run one after the other.

Starting one, and warming it up, is most of what a small program of Spark takes. Run as a program
this file starts the machine, prints its port and secret, and stops Spark in it for every line that
it reads, so that the next program starts Spark anew.
"""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.support.spark_driver import spark_environment


@contextlib.contextmanager
def spark_gateway(
    folder: Path, python: Path
) -> Iterator[tuple[Mapping[str, str], Callable[[], None]]]:
    """The environment of programs that use the machine, and what to call behind each of them.

    Relative paths that Spark reads and writes are in `folder`, where the machine starts.
    """
    environment = {**spark_environment(folder / "spark"), "PYSPARK_PYTHON": str(python)}
    with (
        (folder / "spark.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.spark_gateway"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout
        port, secret = stdout.readline().split()

        def stop() -> None:
            print("stop", file=stdin, flush=True)
            assert stdout.readline() == "stopped\n"

        try:
            yield (
                {**environment, "PYSPARK_GATEWAY_PORT": port, "PYSPARK_GATEWAY_SECRET": secret},
                stop,
            )
        finally:
            stdin.close()


def main() -> None:
    from pyspark.java_gateway import launch_gateway

    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    parameters = gateway.gateway_parameters
    _tell(f"{parameters.port} {parameters.auth_token}")
    contexts = getattr(getattr(gateway.jvm, "org.apache.spark.SparkContext$"), "MODULE$")
    for _ in sys.stdin:
        if contexts.getActive().isDefined():
            contexts.getActive().get().stop()
        _tell("stopped")
    gateway.shutdown()
    gateway.proc.stdin.close()


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
