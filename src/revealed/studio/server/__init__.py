"""Routes, middleware and settings of the web server."""
