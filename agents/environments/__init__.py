"""Batches of Gymnasium environments in NumPy; TensorFlow is never imported."""
