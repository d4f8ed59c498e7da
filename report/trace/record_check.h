/* SPDX-License-Identifier: MIT
 * Checks that a record of a trace is well formed before its fields are read, and says to which
 * group a kind of record belongs.
 */
#ifndef PPERF_REPORT_TRACE_RECORD_CHECK_H
#define PPERF_REPORT_TRACE_RECORD_CHECK_H

#include "report/trace/trace_reader.h"

/* Checks a record that begins at `head`, where `room` bytes are left in its block. head->size must
 * fit into `room`. The struct of the kind must fit into head->size, together with the texts or
 * arrays that follow it by the counts in the struct. An unknown kind passes if its size fits.
 * Returns NULL if the record is well formed. Otherwise returns the end of a sentence that begins
 * with "a record", in static memory. */
const char *record_check(const struct trace_head *head, size_t room);

/* Returns whether records of `kind` have a stamp (TIMED in trace_format.h). False if unknown. */
bool kind_is_timed(unsigned kind);
/* Returns whether records of `kind` belong in dictionary blocks. A stream's reader skips them and
 * counts them as unknown. False if unknown. */
bool kind_is_dictionary(unsigned kind);
/* Returns whether records of `kind` come from CUPTI, with times of CUPTI instead of a stamp.
 * GPU_BATCH has a stamp and is not one of them. False if unknown. */
bool kind_is_gpu(unsigned kind);

/* Returns the word that `dump` and `info` print for an event of `kind` (enum trace_kind or enum
 * trace_event_kind). Returns NULL for a kind that these views leave out. */
const char *event_kind_name(uint32_t kind);

#endif
