/* SPDX-License-Identifier: MIT
 * cupti_guest_clock.h: the clock of another client of CUPTI's (cupti_guest.h), and where a record has what differs
 * by clock or by session. CUPTI's own clock is CLOCK_REALTIME, as nobody has set it another.
 *
 * Threads: any; nothing is kept.
 */
#ifndef PPERF_COLLECTOR_CUPTI_CLIENT_CLOCK_H
#define PPERF_COLLECTOR_CUPTI_CLIENT_CLOCK_H

#include "collector/cupti/abi.h"

#include <stddef.h>
#include <stdint.h>

struct clock_pair { /* the same moment by both clocks */
	uint64_t cupti, client;
};

uint64_t client_clock_cupti_ns(void);

/* Both now. clock NULL: both 0. */
struct clock_pair client_clock_pair(cupti_clock clock);

/* Brings the times in a record to the guest's clock, by what both said at two moments. A time of 0 is not known, and stays. */
void client_clock_convert(
	uint8_t *record, size_t bytes, const struct clock_pair *from, const struct clock_pair *to);

/* Where the correlation id lies of what the GPU did for a call; 0: of other kinds, which have a time that says whether they
 * are of the session. */
size_t client_record_correlation_offset(uint32_t kind);
/* Where its first time lies, 0: it has none. */
size_t client_record_time_offset(uint32_t kind);

#endif
