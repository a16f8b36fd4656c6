"""Draws episodes again from their seeds and actions; without TensorFlow."""
