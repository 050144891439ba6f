"""Items and results as Arrow tables, for Spark and others who use Arrow. Needs only pyarrow."""
