"""What commands print: JSON for programs, lines, tables and progress bars for people."""
