"""Finite Markov decision processes."""
