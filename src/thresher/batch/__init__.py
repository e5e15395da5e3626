"""Batch solvers: all examples in memory, column by column, to a certificate of optimality."""
