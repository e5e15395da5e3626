"""The data formats."""
