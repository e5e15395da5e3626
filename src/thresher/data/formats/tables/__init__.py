"""Formats with columns: line-based ones, and Arrow batches."""
