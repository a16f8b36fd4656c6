"""Reports on runs, made from their run folders."""
