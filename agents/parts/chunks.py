"""Former names of `algorithms.gradient_accumulation`, for one release."""

from __future__ import annotations

from agents.algorithms.gradient_accumulation import num_filled as filled
from agents.algorithms.gradient_accumulation import padded_rows as whole
from agents.algorithms.gradient_accumulation import split
from agents.algorithms.gradient_accumulation import sum_chunks as total
from agents.algorithms.gradient_accumulation import take

__all__ = ["filled", "split", "take", "total", "whole"]
