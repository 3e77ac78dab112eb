"""What is assumed: prior, noise, and the likelihood they make."""
