"""Compiled loops, one conditional each: arrays in, arrays out, nothing but numpy and numba."""

from revealed.kernels import _collector as _collector
