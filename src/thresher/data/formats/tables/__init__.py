"""Formats with columns: of lines, and in batches of Arrow."""
