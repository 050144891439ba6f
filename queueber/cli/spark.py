"""`queueber spark`: jobs that fill a queue from files, and bring results back into files.

The same commands are `python -m queueber.spark`. Spark is imported by the command that needs it.
"""

import click

from queueber.cli.spark_drain import drain
from queueber.cli.spark_enqueue import enqueue
from queueber.cli.spark_status import status


@click.group()
def spark() -> None:
    """Spark jobs: files into a queue, results into files.

    \b
    Examples:
      queueber spark enqueue docs.parquet -q ocr --batch run-42
      queueber spark status -q ocr --batch run-42
      queueber spark drain results -q ocr --batch run-42 --wait

    They need 'pip install queueber[spark]' and Java. Under spark-submit they are the file
    queueber/spark/__main__.py; executors need Queueber too.
    """


for _command in (enqueue, drain, status):
    spark.add_command(_command)
