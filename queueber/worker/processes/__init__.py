"""Worker processes, each with a pool of its own, and the supervisor that replaces them."""
