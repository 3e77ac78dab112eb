"""Samplers turn decisions and a prior into draws."""
