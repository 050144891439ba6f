"""The upgrade of a store: a chain of steps, each from one format to the next."""
