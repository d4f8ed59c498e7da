/* SPDX-License-Identifier: MIT
 * trace_check.h: whether a record is what its kind promises, before anybody looks into it.
 */
#ifndef PPERF_TRACE_CHECK_H
#define PPERF_TRACE_CHECK_H

#include "collector/trace_format.h"
#include <stdbool.h>

/* NULL: the record is whole (its struct, and the texts that its counts announce, lie within its size, and that within `room`
 * bytes). Else what is wrong, as the end of a sentence that begins "a record". Unknown kinds are whole. */
const char *record_problem(const struct trace_head *head, size_t room);

bool kind_is_timed(unsigned kind);
bool kind_is_dictionary(unsigned kind);
bool kind_is_gpu(unsigned kind); /* delivered by CUPTI, without a stamp */

#endif
