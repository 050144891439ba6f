"""The rules that every history must keep, a file for each subject."""
