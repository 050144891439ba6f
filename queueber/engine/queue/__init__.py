"""A queue: the states of its items, and the operations that change them."""
