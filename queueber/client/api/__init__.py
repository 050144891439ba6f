"""What users hold. The awaited classes are written by hand, the blocking ones generated."""
