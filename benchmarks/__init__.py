"""Measurements of speed and of pulls; the figures they gave are in results/."""
