"""Networks and the distributions they end in."""
