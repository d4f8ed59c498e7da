/* SPDX-License-Identifier: MIT
 * Finds PyTorch's shared objects in this process and the symbols in them. Python loads them
 * without RTLD_GLOBAL, so a plain dlsym does not find their symbols. Nothing is loaded that the
 * program has not loaded.
 *
 * Threads: any. No lock of ours is held during calls to the dynamic linker. errno is preserved.
 * Nothing here allocates, but the dynamic linker may. torch_library is cheap once it has returned a
 * handle. Until then it searches all loaded objects, so a hot path must not call it.
 */
#ifndef PPERF_PRELOAD_TORCH_LIBRARIES_H
#define PPERF_PRELOAD_TORCH_LIBRARIES_H

#include <stdbool.h>
#include <stdint.h>

enum torch_library { TORCH_CPU, TORCH_PYTHON, TORCH_C10, TORCH_C10_CUDA, TORCH_LIBRARIES };

/* Returns a handle for dlsym, or NULL if the object is not loaded yet. A handle stays valid,
 * because it is never closed and so the object is never unloaded. */
void *torch_library(enum torch_library which);

/* Sets `begin` to the object's first mapped byte and `end` to the byte after its last one.
 * Returns false if the object is not loaded. */
bool torch_library_range(enum torch_library which, uintptr_t *begin, uintptr_t *end);

/* Returns what the object, or one that it depends on, defines as `name` (mangled). Returns NULL
 * if there is no definition or the object is not loaded. */
void *torch_symbol(enum torch_library which, const char *name);

/* Returns a definition of `name` other than `own`, for a PyTorch symbol that this library
 * defines too. Objects are searched in load order, those after this library first. Returns NULL
 * if there is none. */
void *torch_symbol_elsewhere(const void *own, const char *name);

#endif
