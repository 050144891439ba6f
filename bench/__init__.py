"""Benchmarks: figures to compare within one run, never asserted by a test.

Run one with `python -m bench.engine`, `bench.rpc`, `bench.depth`, `bench.large_store` or
`bench.spark`; `--help` says what it measures.
"""
