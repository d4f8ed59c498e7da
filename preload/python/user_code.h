/* SPDX-License-Identifier: MIT
 * Says whether a file of Python code is the program's own, by its name. Others are PyTorch,
 * installed packages, the standard library, code generated at run time, and pperf's.
 */
#ifndef PPERF_PRELOAD_PYTHON_USER_CODE_H
#define PPERF_PRELOAD_PYTHON_USER_CODE_H

#include <stdbool.h>
#include <stddef.h>

/* Adds a folder that is not the program's, without the last slash. The text is copied.
 * An empty or overlong folder is left out, and so is one more than the list holds. Called before
 * the first call of python_is_user_code. */
void python_add_library_folder(const char *folder, size_t bytes);

bool python_is_user_code(const char *file, size_t bytes);

#endif
