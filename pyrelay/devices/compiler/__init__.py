"""Kernel texts to object code: the kernel language, its lowering to LLVM, compiling processes."""
