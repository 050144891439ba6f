"""How calls get to the server: connection, batching, retries, and where the loop runs."""
