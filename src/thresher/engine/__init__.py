"""How parts become machine code: the verbs, the kernels, the stores."""
