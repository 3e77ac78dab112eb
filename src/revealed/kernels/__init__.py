"""Compiled loops, one conditional each: arrays in, arrays out, nothing but numpy and numba."""
