"""Compiled sums over curves: what a silo computes in every round, near the limits of the machine.

`chunked.sums_of_curves` is the way in and imports no compiler; numba comes with the first sum. Sums are words of integers
(`privacy.exact`), and `privacy.exact.sum_slack` is the part of a sensitivity that pays for their floating point.

| module | what |
|---|---|
| `chunked` | all curves of a process, chunk by chunk, in memory or in files |
| `packed` | one chunk: packed once, then sums over it |
| `arena`, `store` | its memory and its layout |
| `direct`, `moments` | a curve's score, from its points or from its trigonometric moments |
| `bounding` | clipping, and adding up |
| `passes` | the loops over groups of curves |
| `simd`, `trig`, `jit` | vectors of eight doubles, their cosines, how kernels are compiled |
"""
