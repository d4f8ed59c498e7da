/* SPDX-License-Identifier: MIT
 * Converts the times in a record to the clock of the second CUPTI client. Knows where a record has
 * what depends on the clock or the session.
 *
 * CUPTI's own clock is CLOCK_REALTIME, because no client has set another. Any thread may call;
 * there is no state.
 */
#ifndef PPERF_COLLECTOR_CUPTI_CLIENT_CLOCK_H
#define PPERF_COLLECTOR_CUPTI_CLIENT_CLOCK_H

#include "collector/cupti/abi.h"

#include <stddef.h>
#include <stdint.h>

/* Two clocks sampled at the same time. */
struct clock_pair {
	uint64_t cupti, client;
};

uint64_t client_clock_cupti_ns(void);

/* Samples both clocks. Both values are 0 if `clock` is NULL. */
struct clock_pair client_clock_pair(cupti_clock clock);

/* Converts the times in a record to the client's clock, linearly through two samples of both
 * clocks. A time of 0 is unknown and stays 0. */
void client_clock_convert(
	uint8_t *record, size_t bytes, const struct clock_pair *from, const struct clock_pair *to);

/* Returns the offset of a record's correlation id, for kinds of GPU activity. 0 for other kinds,
 * whose time shows whether they belong to the session. */
size_t client_record_correlation_offset(uint32_t kind);
/* Returns the offset of a record's correlation id, for all kinds that carry the id of a call which
 * they do not describe themselves. 0 for other kinds. */
size_t client_record_id_offset(uint32_t kind);
/* Returns the offset of the record's first time, 0 if it has none. */
size_t client_record_time_offset(uint32_t kind);

#endif
