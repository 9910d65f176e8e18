"""Where a run is found on a server; those who ask it use the same words."""

from shortlist.run.addresses import part_of, path_of, run_of

__all__ = ["part_of", "path_of", "run_of"]
