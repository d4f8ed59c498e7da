/* SPDX-License-Identifier: MIT
 * python_own.h: whose a file of Python code is, by its name: the program's own, or that of what it is built on
 * (PyTorch, installed packages, the standard library, code that is made as it runs, ours).
 */
#ifndef PPERF_PRELOAD_PYTHON_USER_CODE_H
#define PPERF_PRELOAD_PYTHON_USER_CODE_H

#include <stdbool.h>
#include <stddef.h>

/* A folder that is not the program's, without the last slash; copied. Before python_is_own is called by anybody. */
void python_add_library_folder(const char *folder, size_t bytes);

bool python_is_user_code(const char *file, size_t bytes);

#endif
