"""The store: what it promises, and RocksDB that keeps it."""
