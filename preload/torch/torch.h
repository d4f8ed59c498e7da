/* SPDX-License-Identifier: MIT
 * Starts the recording of PyTorch when it is loaded.
 *
 * torch/_C is a stub whose only function jumps to `initModule` of libtorch_python. This library
 * defines a function of that name, calls the real one, and then starts. At that point the GIL is
 * held, PyTorch's libraries are initialised, and `import torch` is half done. This works with
 * all of Python's options. The order is:
 *
 *   1. operators      callbacks for operators, autograd and record_function
 *   2. tensor_memory  PyTorch's report functions
 *   3. modules        module calls, and hooks at the end of the import
 *   4. record_function_layout, python/frames  measurements, in these hooks
 */
#ifndef PPERF_PRELOAD_TORCH_TORCH_H
#define PPERF_PRELOAD_TORCH_TORCH_H

#include <stdbool.h>

/* Called by the constructor unless the library is disabled. `run_python`: PPERF_PYTHON; if
 * false, no Python code of ours is run. */
void torch_configure(bool run_python);

/* Starts the recording if PyTorch is loaded but did not pass through initModule (a C++ program,
 * a Python linked with it, a library loaded late). Operators start at once, the rest at the next
 * pending call of Python's main thread. Called at infrequent CUDA calls, outside stream_enter. */
void torch_late_start(void);

#endif
