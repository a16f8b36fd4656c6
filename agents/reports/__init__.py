"""Reports on runs, from their folders alone."""
