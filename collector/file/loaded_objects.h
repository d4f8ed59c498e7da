/* SPDX-License-Identifier: MIT
 * Records the loaded objects, so that the report can resolve addresses later.
 */
#ifndef PPERF_COLLECTOR_FILE_LOADED_OBJECTS_H
#define PPERF_COLLECTOR_FILE_LOADED_OBJECTS_H

#include <stdint.h>

/* Writes a MODULE record for each newly loaded object. Call it before a record with these addresses
 * (a call stack, a function) is written. It does nothing if the addresses were seen before, or if
 * nothing was loaded since.
 *
 * An object that replaces an unloaded one has a record after the former's. errno is preserved, and
 * none of our locks is held while the dynamic linker is called. Any thread may call it, between
 * stream_enter and stream_leave. */
void loaded_objects_record(const uint64_t *addresses, uint32_t count);

#endif
