"""Opening a store after a crash, and reading what is left of a damaged one."""
