"""How Python becomes machine code, and the cache of it: all that touches the inside of Numba."""
