"""Worker processes that step blocks of environments."""
