"""What is possible: the paper's worst-case complexity and the bounds around it."""

from shortlist.bounds.complexity import Complexity, complexity

__all__ = ["Complexity", "complexity"]
