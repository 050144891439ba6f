"""What the server measures: calls, commits, queues, topics, the store, the process, over time."""
