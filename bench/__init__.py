"""Benchmarks: figures to compare within one run, never asserted by a test.

Run one with `python -m bench.engine`, `bench.rpc`, `bench.depth` or `bench.large_store`; `--help`
says what it measures.
"""
