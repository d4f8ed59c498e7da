/* SPDX-License-Identifier: MIT
 * Maps between our handles and those that a program holds: domains, registered strings, resources
 * and user locks.
 *
 * A program holds the address of a struct nvtx_handle. With a chained tool (chained_tool.h) it
 * holds the tool's handle, and an alias leads from that to ours. Handles live for ever, also in a
 * forked child. Domains and strings of the same text are the same handle.
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

/* Returns the handle, made if needed. `domain` is a name id. NULL: no memory. */
const struct nvtx_handle *nvtx_handle_make(
	enum nvtx_handle_kind kind, uint32_t domain, const char *text);

/* Makes `foreign`, the handle of a chained tool, an alias of `handle`. */
void nvtx_handle_alias(const struct nvtx_handle *handle, const void *foreign);

/* Returns the handle for the value `held` by the program. NULL for NULL. With a chained tool, NULL
 * also for an unknown value. */
const struct nvtx_handle *nvtx_handle_of(const void *held);

/* Returns the name id of the domain that the program holds, 0 for NULL, the default domain. */
uint32_t nvtx_domain_of(const void *held);

/* Returns the handle's text, terminated; "" for NULL. */
const char *nvtx_handle_chars(const struct nvtx_handle *handle);

/* Resets the lock in a forked child. */
void nvtx_handles_forked(void);

#endif
