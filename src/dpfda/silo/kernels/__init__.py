"""Compiled sums over curves: what a silo computes in every round, near the limits of the machine.

`silo.chunked_sums.sums_of_curves` is the way in and imports no compiler; numba comes with the first sum. Sums are words of
integers (`privacy.exact`), and `privacy.exact.sum_slack` is the part of a sensitivity that pays for their floating point.

| module | what |
|---|---|
| `packed` | one chunk: packed once, then sums over it |
| `frequencies` | what kernels know of a basis, and the sizes that follow |
| `arena`, `store`, `room` | memory, layout and working memory of a chunk |
| `direct`, `moments`, `long_curves` | a curve's score, from its points or from its trigonometric moments |
| `bounding` | clipping, and adding up |
| `passes`, `summary_passes` | the loops over groups of curves, for gradients and for the rest |
| `changing`, `changing_curves`, `changing_passes`, `nodes` | all of these for curves whose design changes within them |
| `simd`, `trig` | vectors of eight doubles, their cosines |

Each compiled function has one Python caller, in its own module, that checks every shape before the first write
(`dpfda._compile`); `make test-bounds` runs the suites with every index checked.
"""
