"""Scripts that keep the project honest."""
