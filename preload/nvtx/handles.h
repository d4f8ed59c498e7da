/* SPDX-License-Identifier: MIT
 * Maps the handles of the program to ours: domains, registered strings, resources and user locks.
 *
 * A handle of the program is the address of a struct nvtx_handle. With a chained tool
 * (chained_tool.h) it is the tool's handle, which is stored as an alias of ours. Handles are never
 * freed, also in a forked child. Domains and strings of the same text are the same handle.
 */
#ifndef PPERF_PRELOAD_NVTX_HANDLES_H
#define PPERF_PRELOAD_NVTX_HANDLES_H

#include <stdint.h>

enum nvtx_handle_kind {
	NVTX_HANDLE_DOMAIN = 1,
	NVTX_HANDLE_STRING,
	NVTX_HANDLE_RESOURCE,
	NVTX_HANDLE_LOCK
};

struct nvtx_handle {
	uint32_t kind;   /* enum nvtx_handle_kind */
	uint32_t domain; /* name id; in a DOMAIN: of its own name */
	uint32_t name;
	uint32_t serial; /* RESOURCE, LOCK: unique; else 0 */
};

/* Returns the handle, made if needed. `domain` is a name id. NULL: no memory, the table is full, or
 * recording is off. */
const struct nvtx_handle *nvtx_handle_make(
	enum nvtx_handle_kind kind, uint32_t domain, const char *text);

/* Makes `chained_handle`, a handle of the chained tool, an alias of `handle`. */
void nvtx_handle_alias(const struct nvtx_handle *handle, const void *chained_handle);

/* Returns our handle for a handle of the program. NULL for NULL. With a chained tool, NULL also for
 * an unknown handle. */
const struct nvtx_handle *nvtx_handle_of(const void *program_handle);

/* Returns the name id of the program's domain. 0 for NULL, the default domain. */
uint32_t nvtx_domain_of(const void *program_handle);

/* Returns the handle's text, terminated; "" for NULL. */
const char *nvtx_handle_chars(const struct nvtx_handle *handle);

/* Resets the lock in a forked child. */
void nvtx_handles_forked(void);

#endif
