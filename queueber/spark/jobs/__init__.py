"""Ready-made jobs: files into a queue, and results into files."""
