"""The training loop, its position, what later passes read, hold-outs and progress."""
