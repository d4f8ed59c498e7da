/* SPDX-License-Identifier: MIT
 * Makes the Python module pperf (pperf.py) importable in a program that runs under libpperf.so, and
 * defines the functions that the module calls.
 *
 * A finder is appended to sys.meta_path. It is called only for modules that no other finder has, so
 * an installed module pperf, or the program's own, goes first. Nothing else of the program
 * changes, and no Python code of pperf runs before the program imports pperf.
 */
#ifndef PPERF_PRELOAD_USER_PYTHON_MODULE_H
#define PPERF_PRELOAD_USER_PYTHON_MODULE_H

/* Called by the constructor if PPERF_PYTHON is not 0. If the process is an interpreter that has not
 * started yet, its start appends the finder: the interpreter initialises its built-in module `time`
 * right after sys.meta_path is complete, and the init function of that module is replaced. */
void python_module_configure(void);

/* Appends the finder, if that has not been done before. For a Python that was loaded later. Called
 * with the GIL held. */
void python_module_install_late(void);

#endif
