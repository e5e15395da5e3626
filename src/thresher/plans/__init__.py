"""Many models on one reading of the data, each as if it were alone."""
