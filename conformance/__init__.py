"""The public conformance suite of Durable Streams: `python -m conformance` runs it."""
