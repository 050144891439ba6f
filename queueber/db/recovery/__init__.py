"""Opening a store after a crash, and saving what can be read of a damaged one."""
