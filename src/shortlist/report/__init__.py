"""Results and runs as text, HTML and plain data."""
