/* SPDX-License-Identifier: MIT
 * trace_check.h: what is known of each kind of record, and whether a record is what its kind promises before
 * anybody looks into it.
 */
#ifndef PPERF_REPORT_TRACE_RECORD_CHECK_H
#define PPERF_REPORT_TRACE_RECORD_CHECK_H

#include "report/trace/trace_reader.h"

/* NULL: the record is whole (its struct, and the texts that its counts announce, lie within its size, and that
 * within `room` bytes). Else what is wrong, as the end of a sentence that begins "a record". Unknown kinds are
 * whole. */
const char *record_check(const struct trace_head *head, size_t room);

bool kind_is_timed(unsigned kind);
bool kind_is_dictionary(unsigned kind);
bool kind_is_gpu(unsigned kind); /* delivered by CUPTI, without a stamp */

/* The word for an event.kind in views; NULL: none. */
const char *event_kind_name(uint32_t kind);

#endif
