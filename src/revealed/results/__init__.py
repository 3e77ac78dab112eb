"""What comes out of a fit, and what follows from it."""
