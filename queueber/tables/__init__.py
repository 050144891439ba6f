"""Items and results as Arrow tables, for Spark and other users of Arrow. Needs only pyarrow."""
