"""Rules of our own for thresher."""
