"""`queueber spark`: Spark jobs that add files to a queue, and export results to files.

`python -m queueber.spark` has the same commands. Each imports Spark only when it needs it.
"""

import click

from queueber.cli.spark.enqueue import enqueue
from queueber.cli.spark.export import export
from queueber.cli.spark.status import status


@click.group()
def spark() -> None:
    """Spark jobs: add files to a queue, export results.

    \b
    Examples:
      queueber spark enqueue docs.parquet -q ocr --batch run-42
      queueber spark status -q ocr --batch run-42
      queueber spark export results -q ocr --batch run-42 --wait

    They need 'pip install queueber[spark]' and Java. For spark-submit, name the file
    queueber/spark/__main__.py; executors need Queueber, too.
    """


for _command in (enqueue, export, status):
    spark.add_command(_command)
