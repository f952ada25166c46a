"""Kernels compiled ahead of time, from the same Python source that numba compiles: `python -m dpfda.native`.

| module | what |
|---|---|
| `lowering` | kernels to machine code of one instruction set, by numba and LLVM |
| `linking` | machine code to a shared object, without a linker |
| `sources` | which files a kernel is compiled from |
| `build` | the objects of all instruction sets, and their manifest |

`dpfda._objects` chooses and loads what is made here. Nothing of this room is imported when kernels run.
"""
