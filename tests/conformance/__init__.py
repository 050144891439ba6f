"""Tests with programs that others wrote against us."""
