/* SPDX-License-Identifier: MIT
 * torch_libraries.h: PyTorch's shared objects in this process. Python loads them without RTLD_GLOBAL, so no dlsym by name alone finds what is in
 * them, and we never load one that the program has not loaded.
 *
 * Threads: any. No lock of ours is held while the dynamic linker is asked. errno is kept. Not in a hot path before it has answered once; nothing here
 * allocates, but the dynamic linker may.
 */
#ifndef PPERF_PRELOAD_TORCH_LIBRARIES_H
#define PPERF_PRELOAD_TORCH_LIBRARIES_H

#include <stdbool.h>
#include <stdint.h>

enum torch_library { TORCH_CPU, TORCH_PYTHON, TORCH_C10, TORCH_C10_CUDA, TORCH_LIBRARIES };

/* A handle for dlsym; it stays good for ever, since the object is not unloaded any more. NULL: it is not loaded, or not yet: ask again later. */
void *torch_library(enum torch_library which);

/* Where the object lies: from its first mapped byte to behind its last. false: it is not loaded. */
bool torch_library_range(enum torch_library which, uintptr_t *begin, uintptr_t *end);

/* What the object itself, or one that it needs, defines under this (mangled) name. NULL: nothing, or the object is not loaded. */
void *torch_symbol(enum torch_library which, const char *name);

/* For a symbol of PyTorch that we define: another definition than `own`, in whatever object comes first after us. NULL: there is none. */
void *torch_symbol_elsewhere(const void *own, const char *name);

#endif
