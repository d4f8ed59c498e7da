/* SPDX-License-Identifier: MIT
 * Records what torch.compile does as ranges: each compilation with the function that is compiled,
 * and the phases of compiler and autotuner.
 *
 * A profiler in the program would show the phases too. Without one, newer releases of PyTorch do
 * not report them. The ranges have the names that PyTorch gives them, such as `GraphLowering.run
 * (dynamo_timed)`. A compilation is
 *
 *	torch.compile Net.forward (net.py:12), frame 0, version 1
 *	torch.compile backward of Net.forward (net.py:12), frame 0, version 1
 *
 * where PyTorch's compile id is 0/1. Only C functions are added, so Python's trace functions see
 * the same frames as without pperf.
 */
#ifndef PPERF_PRELOAD_TORCH_COMPILE_H
#define PPERF_PRELOAD_TORCH_COMPILE_H

/* A hook for torch_modules_call_after_import: begins to record now, or when torch._dynamo is
 * imported. Writes META source.torch_compile: `on` once the program
 * has imported torch._dynamo, or why compilations are not recorded. */
void torch_compile_start(void);

#endif
