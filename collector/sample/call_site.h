/* SPDX-License-Identifier: MIT
 * Decodes the call instruction before an address, which a return address has. x86-64 only.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_CALL_SITE_H
#define PPERF_COLLECTOR_SAMPLE_CALL_SITE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the bytes before `address` may be a call instruction. */
bool call_site_ends_at(uint64_t address);

/* Returns the function that the call before `address` calls, through the entry of a procedure
 * linkage table too. Returns 0 if that is not in the code: the call is by a register or a pointer
 * in memory that changes. */
uint64_t call_site_target(uint64_t address);

#endif
