"""Policy and value networks, observation encoders and action distributions."""
