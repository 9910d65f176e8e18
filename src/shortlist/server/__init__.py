"""An HTTP server: pages to watch runs, and an API for workers."""
