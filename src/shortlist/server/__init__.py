"""A door over HTTP: runs to watch in a browser, and to feed from anywhere."""
