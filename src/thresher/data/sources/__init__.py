"""Sources of files: blocks read and parsed by threads, handed over in order as Chunks."""
