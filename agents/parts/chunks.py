"""Earlier names of `agents.algorithms.chunks`; they remain for one release."""

from __future__ import annotations

from agents.algorithms.chunks import num_filled as filled
from agents.algorithms.chunks import padded_rows as whole
from agents.algorithms.chunks import split
from agents.algorithms.chunks import sum_chunks as total
from agents.algorithms.chunks import take

__all__ = ["filled", "split", "take", "total", "whole"]
