"""The rules that every history keeps, a file for each subject."""
