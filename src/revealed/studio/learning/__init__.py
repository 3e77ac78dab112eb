"""What is learnt from a game while it is played, and the understudy that plays by it."""
