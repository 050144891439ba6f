"""The jobs of `queueber spark`, as `python -m queueber.spark` and for spark-submit."""

from queueber.cli import spark_main

if __name__ == "__main__":
    spark_main()
