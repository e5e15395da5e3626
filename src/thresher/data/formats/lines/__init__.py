"""Formats of one example a line: two modules each, and what they share."""
