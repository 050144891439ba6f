"""Readers: results and items as DataFrames, in batches and as streams."""
