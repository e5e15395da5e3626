"""Batch solvers: coordinate descent on all examples in memory, with a certificate of optimality."""
