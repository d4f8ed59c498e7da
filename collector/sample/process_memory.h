/* SPDX-License-Identifier: MIT
 * Copies memory of this process that may be unmapped or changed at any time. The kernel makes the
 * copy, so an address that cannot be read is an answer and not a fault.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_PROCESS_MEMORY_H
#define PPERF_COLLECTOR_SAMPLE_PROCESS_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Copies up to `bytes` bytes from address `from`. Returns how many it copied. The copy ends before
 * the first page that cannot be read. errno is preserved. Any thread may call this. */
size_t process_memory_copy(void *to, uint64_t from, size_t bytes);

/* Returns 0 if process_memory_copy() works in this process, else the errno of the refusal. Old
 * containers forbid process_vm_readv. */
int process_memory_error(void);

/* Called by the sampler's thread when it begins: it needs no system call for its process from then
 * on. */
void process_memory_begin(void);

/* Returns this process, to read memory of. */
pid_t process_memory_pid(void);

#endif
