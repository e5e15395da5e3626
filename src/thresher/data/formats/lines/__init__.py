"""Formats with one example per line: two modules each, and shared ones."""
