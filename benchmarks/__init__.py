"""Commands that measure training speed, returns and fault tolerance."""
