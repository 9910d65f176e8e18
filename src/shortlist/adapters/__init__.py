"""Doors in other tools: each module imports the tool that it is for, and is imported only by its users."""
