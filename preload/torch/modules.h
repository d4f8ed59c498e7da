/* SPDX-License-Identifier: MIT
 * Records the calls of PyTorch's modules as ranges, and runs hooks at the end of `import torch`.
 *
 * The Python part is modules.py, which is embedded in the library. A range's name is the
 * module's path below the module that called it, or the class name if there is no such path. Its
 * detail is the class. No attribute is added to a module, and torch.compile does not see the
 * wrapper.
 */
#ifndef PPERF_PRELOAD_TORCH_MODULES_H
#define PPERF_PRELOAD_TORCH_MODULES_H

#include <stdbool.h>

/* Called by the constructor. `python`: PPERF_PYTHON; `modules`: PPERF_MODULES. `in_children`:
 * module calls alone make a forked child create a trace file. */
void torch_modules_configure(bool python, bool modules, bool in_children);

/* Called in a forked child. */
void torch_modules_forked(void);

/* Registers `hook`, a function that is called once when torch has been imported completely.
 *
 * The function runs on the importing thread before the import returns. If torch has been imported
 * before torch_modules_start is called, torch_modules_start calls it. The GIL is held, no exception
 * is set, and no lock of torch is held; it may run Python. Hooks run in the order of registration,
 * and not at all if the import fails. Must be called before torch_modules_start. Returns false
 * if there is no room for another hook. */
bool torch_modules_call_after_import(void (*hook)(void));

/* Runs modules.py and writes META source.torch_modules and version.python. Called with the GIL
 * held, while torch is imported and its libraries are initialised. */
void torch_modules_start(void);

#endif
