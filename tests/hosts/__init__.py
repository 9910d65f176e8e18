"""Adapters and readers with the real tools that they are for; `make test-hosts` runs these tests."""
