"""Compiled sums over curves: what a silo computes in every round, near the limits of the machine.

`packed.PackedCurves` is the interface and imports no compiler; numba comes with the first call. `exact.sum_slack` is
the part of a sensitivity that pays for the floating point of these sums.

| module | what |
|---|---|
| `packed` | the interface: curves packed once, then sums over them |
| `exact` | sums without rounding, and the proof |
| `store` | the packed layout |
| `direct`, `moments` | a curve's score, from its points or from its trigonometric moments |
| `bounding` | clipping, and adding up |
| `passes` | the loops over groups of curves |
| `simd`, `trig`, `jit` | vectors of eight doubles, their cosines, how kernels are compiled |
"""
