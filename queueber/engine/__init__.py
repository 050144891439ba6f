"""The rules: synchronous, deterministic, one operation a file. Time and ids come in as
arguments."""
