"""Games of Tetris from seed and moves, those in memory, and the quiz about them."""
