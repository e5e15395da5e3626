"""Sources that read files: threads read and parse blocks, which are yielded in order as Chunks."""
