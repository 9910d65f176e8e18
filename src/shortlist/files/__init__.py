"""Problem files, and the files of arms that they refer to."""
