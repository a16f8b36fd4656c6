"""Networks, and distributions over actions with their outputs as parameters."""
