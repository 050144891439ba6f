"""What a queue remembers beside its items: batches, producers, keys, and for how long."""
