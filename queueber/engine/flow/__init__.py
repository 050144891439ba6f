"""Workflows: what happens in one queue once something is done in another, or in the same."""
