"""Statistics of the data while learning, warnings and advice."""
