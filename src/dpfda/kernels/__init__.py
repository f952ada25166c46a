"""Compiled sums over curves: what a silo computes in every round, near the limits of the machine.

`packed.PackedCurves` is the interface and imports no compiler; numba comes with the first call. `privacy.exact` adds without
rounding, and its `sum_slack` is the part of a sensitivity that pays for the floating point of these sums.

| module | what |
|---|---|
| `packed` | the interface: curves packed once, then sums over them |
| `chunked` | curves of one process, chunk by chunk, in threads |
| `store`, `arena` | the packed layout, and the memory or file that it is in |
| `direct`, `moments` | a curve's score, from its points or from its trigonometric moments |
| `bounding` | clipping, and adding up |
| `passes` | the loops over groups of curves |
| `simd`, `trig`, `jit` | vectors of eight doubles, their cosines, how kernels are compiled |
"""
