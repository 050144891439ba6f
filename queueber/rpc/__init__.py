"""Cap'n Proto adapters, and the loop they run on."""
