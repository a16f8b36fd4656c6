"""Legged robots that walk with commanded velocities."""
