"""Studies with participants and conditions, and what is found in them."""
