"""The database, its tables, and the one thread that writes to it."""
