"""Deprecated names of `gradient_accumulation`, kept for one release."""

from agents.algorithms.gradient_accumulation import num_filled as filled
from agents.algorithms.gradient_accumulation import padded_rows as whole
from agents.algorithms.gradient_accumulation import split, take
from agents.algorithms.gradient_accumulation import sum_chunks as total

__all__ = ["filled", "split", "take", "total", "whole"]
