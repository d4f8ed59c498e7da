/* SPDX-License-Identifier: MIT
 * Describes the kinds of records, and checks that a record is well formed before its fields are
 * read.
 */
#ifndef PPERF_REPORT_TRACE_RECORD_CHECK_H
#define PPERF_REPORT_TRACE_RECORD_CHECK_H

#include "report/trace/trace_reader.h"

/* Checks that the struct of `head` and the texts that its counts announce fit into its size, and
 * that its size fits into `room` bytes. Returns NULL if so, else the end of a sentence that
 * begins with "a record". Records of unknown kinds pass if their size fits. */
const char *record_check(const struct trace_head *head, size_t room);

bool kind_is_timed(unsigned kind);
bool kind_is_dictionary(unsigned kind);
bool kind_is_gpu(unsigned kind); /* delivered by CUPTI, without a stamp */

/* Returns the word that views print for `kind` (event.kind), or NULL if there is none. */
const char *event_kind_name(uint32_t kind);

#endif
