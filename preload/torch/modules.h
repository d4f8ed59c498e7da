/* SPDX-License-Identifier: MIT
 * torch_modules.h: the calls of PyTorch's modules become ranges, and the end of `import torch` is made known.
 *
 * What runs in Python is torch_modules.py, which is part of the library. A range's text is the module's path below the module that called it, the
 * class's name where there is no such path; its detail is the class. Nothing of ours is an attribute of a module, and compilers do not see us.
 */
#ifndef PPERF_PRELOAD_TORCH_MODULES_H
#define PPERF_PRELOAD_TORCH_MODULES_H

#include <stdbool.h>

/* In the constructor: PPERF_PYTHON, PPERF_MODULES, and whether modules alone make a forked child a file. */
void torch_modules_configure(bool python, bool modules, bool in_children);

/* In a forked child. */
void torch_modules_forked(void);

/* `hook` is called once, when torch has been imported to its end and before whoever imported it goes on: on that thread, with the GIL, no exception
 * set, nothing of torch's locked. It may run Python. Not called if the import fails. Hooks run in the order in which they were given. Before
 * torch_modules_start. false: there are too many. */
bool torch_modules_at_end_of_import(void (*hook)(void));

/* While torch is imported, its libraries being initialised: GIL held. Python is asked to tell the end of the import. Says in the trace's facts how that
 * went: source.torch_modules, version.python. */
void torch_modules_start(void);

#endif
