"""What callers may ask for: every check of an argument before anything is done."""
