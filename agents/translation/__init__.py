"""TensorFlow graphs of policies as lists of NumPy calls."""
