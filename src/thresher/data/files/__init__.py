"""Bytes: which files there are, here and behind URLs, streams and blocks of them, their content by hash."""
