"""Bytes of text for compiled code: eight and more at a time, numbers, rows of features in order."""
