/* SPDX-License-Identifier: MIT
 * The load (load.h) as events of LTTng-UST: with NUMBERS a range says its number, else its name, as
 * NVTX's do.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "tests/bench/peers/lttng_ranges.h"

#include "tests/bench/load.h"

static inline void chain(unsigned first)
{
	for (unsigned d = 0; d < DEPTH; d++)
#ifdef NUMBERS
		lttng_ust_tracepoint(ranges, open_number, first + d);
#else
		lttng_ust_tracepoint(ranges, open_name, names[first + d]);
#endif
	for (unsigned d = 0; d < DEPTH; d++)
		lttng_ust_tracepoint(ranges, close);
}
