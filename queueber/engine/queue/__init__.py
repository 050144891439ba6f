"""A queue: where its items are, and the operations that move them."""
