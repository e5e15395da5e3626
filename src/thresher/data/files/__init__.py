"""Files, local and remote: finding them, reading them as streams and blocks, hashing their content."""
