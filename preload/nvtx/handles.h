/* SPDX-License-Identifier: MIT
 * nvtx_handles.h: what domains, registered strings, resources and user locks are to us, and what a program holds of them.
 *
 * A program holds the address of a struct nvtx_handle; where another tool is chained (nvtx_chain.h) it holds what that tool gave, and we keep which
 * of ours is meant. Handles live for ever, also in a forked child; domains and strings of the same text are the same handle.
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
	uint32_t domain; /* name id; of a DOMAIN: its own name */
	uint32_t name;
	uint32_t serial; /* RESOURCE, LOCK: which; else 0 */
};

/* NULL: no memory. domain: a name id. */
const struct nvtx_handle *nvtx_handle_make(
	enum nvtx_handle_kind kind, uint32_t domain, const char *text);

/* Remembers that a chained tool calls it `foreign`. */
void nvtx_handle_alias(const struct nvtx_handle *handle, const void *foreign);

/* What the program's `held` is: NULL for NULL and for what we never gave out. */
const struct nvtx_handle *nvtx_handle_of(const void *held);

/* The name id of a domain as the program holds it; 0 for NULL: the default domain. */
uint32_t nvtx_domain_of(const void *held);

/* The handle's text, terminated; "" for NULL. */
const char *nvtx_handle_chars(const struct nvtx_handle *handle);

/* In a forked child: locks are free. */
void nvtx_handles_forked(void);

#endif
