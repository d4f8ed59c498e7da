/* SPDX-License-Identifier: MIT
 * LTTng-UST's events for the load: a range is opened by its name or by its number.
 * lttng/tracepoint-event.h reads this more than once.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER ranges

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tests/bench/peers/lttng_ranges.h"

#if !defined(LTTNG_RANGES_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_RANGES_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(ranges, open_name, LTTNG_UST_TP_ARGS(const char *, name),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_string(name, name)))
LTTNG_UST_TRACEPOINT_EVENT(ranges, open_number, LTTNG_UST_TP_ARGS(uint32_t, number),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, number, number)))
LTTNG_UST_TRACEPOINT_EVENT(ranges, close, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())

#endif

#include <lttng/tracepoint-event.h>
