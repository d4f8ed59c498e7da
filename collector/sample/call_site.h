/* SPDX-License-Identifier: MIT
 * Decodes the call instruction before an address, which a return address has. x86-64 only.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_CALL_SITE_H
#define PPERF_COLLECTOR_SAMPLE_CALL_SITE_H

#include "collector/sample/object_memory.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether the bytes before `address` may be a call instruction. They need not be of an object. */
bool call_site_ends_at(uint64_t address);

/* Returns the function that the call before `address` calls, through the entry of a procedure
 * linkage table too. Returns 0 if that is not in the code: the call is by a register or a pointer
 * in memory that changes. `address` is in an object. */
uint64_t call_site_target(struct object_memory *memory, uint64_t address);

#endif
