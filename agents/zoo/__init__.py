"""The zoo: trained policies of named configs, which commands use by name."""
