"""The async shell: one writer, waiting polls, group commit. Knows no transport and no loop by
name."""
