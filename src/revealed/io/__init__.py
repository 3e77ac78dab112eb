"""Decisions and results to and from dataframes and files."""
