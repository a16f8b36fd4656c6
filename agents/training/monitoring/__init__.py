"""Console output, metrics, videos and warnings of a run."""
