"""The process that runs SELECT: it reads the statement, says what it needs, and computes.

A process of its own, because no query engine that we know keeps within its memory limit: DuckDB
counts what its operators hold, and not the values that functions build. Here the kernel counts.
The process can open no file and no socket, and whoever has started it ends it at the deadline.
"""
