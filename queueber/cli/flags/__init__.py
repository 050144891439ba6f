"""Flags and arguments that several commands share."""
