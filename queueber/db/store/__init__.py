"""The store: its contract, and RocksDB, which implements it."""
