/* SPDX-License-Identifier: MIT
 * Reads the names that CUPTI's kernel records point to. A name is valid only as long as its module
 * is loaded, which may be shorter than the record waits.
 */
#ifndef PPERF_COLLECTOR_CUPTI_KERNEL_NAMES_H
#define PPERF_COLLECTOR_CUPTI_KERNEL_NAMES_H

#include <stdint.h>

/* Returns the name id of the kernel name at `name`, or 0 if it is NULL or has vanished. Any thread
 * may call it, between stream_enter and stream_leave. */
uint32_t kernel_names_id(const char *name);

/* Announces that a module is about to be unloaded. The names that records point to may vanish with
 * it, so from now on they are read with a check. When this returns, no thread reads a name without
 * the check. */
void kernel_names_module_unloads(void);

/* Announces that a module was loaded, or may have been. Its names may be where names of another
 * module were. */
void kernel_names_module_loaded(void);

#endif
