/* SPDX-License-Identifier: MIT
 * modules.h: the loaded objects, so that the report can resolve addresses later.
 */
#ifndef PPERF_COLLECTOR_FILE_LOADED_OBJECTS_H
#define PPERF_COLLECTOR_FILE_LOADED_OBJECTS_H

#include <stdint.h>

/* Sees to it that there is a MODULE record for each loaded object before these addresses (a call stack, a function) are written: when they have not been
 * asked for before and something was loaded since. An object that takes the place of one that was unloaded has a record after the former's.
 * errno is kept; no lock is held while the dynamic linker is asked. Threads: any, between stream_enter and stream_leave. */
void loaded_objects_record(const uint64_t *addresses, uint32_t count);

#endif
