"""Who reads it: results as text."""
