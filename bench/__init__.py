"""Benchmarks. Compare only figures of one run; no test asserts them.

Run one with `python -m bench.engine`, `bench.rpc`, `bench.depth`, `bench.large_store` or
`bench.spark`; `--help` says what it measures.
"""
