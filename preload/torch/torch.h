/* SPDX-License-Identifier: MIT
 * torch.h: PyTorch comes into the process. torch/_C is a stub whose one function jumps to `initModule` of libtorch_python; the preload defines a function of
 * that name, calls the real one, and then begins: with the GIL, all of PyTorch's libraries initialised, in the middle of `import torch`, whatever
 * Python's options are. In order: the operators (torch_ops.h), Python's frames (python_frames.h), the modules (torch_modules.h), which also tell
 * when the import is over, and then the measuring of what the operators do not tell by themselves (torch_layout.h).
 */
#ifndef PPERF_PRELOAD_TORCH_TORCH_H
#define PPERF_PRELOAD_TORCH_TORCH_H

#include <stdbool.h>

/* In the constructor, unless the library is disabled. run_python: PPERF_PYTHON; without it no Python of ours is run. */
void torch_configure(bool run_python);

/* At a call to CUDA, not a frequent one: if PyTorch is here and has not come through initModule (a C++ program, a Python linked with it, a library that was
 * loaded late), the operators begin now; the rest once Python's main thread is at leisure. Outside of stream_enter. */
void torch_late_start(void);

#endif
