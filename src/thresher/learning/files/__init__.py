"""Models, checkpoints and folders on disk."""
