"""Compiles parts to machine code: verbs, kernels and stores."""
