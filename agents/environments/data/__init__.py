"""Episodes, infos, failures and shared arrays of a batch of environments."""
