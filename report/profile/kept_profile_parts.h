/* SPDX-License-Identifier: MIT
 * The parts of a kept profile (kept_profile.h). Only for kept_*.c.
 */
#ifndef PPERF_REPORT_PROFILE_KEPT_PROFILE_PARTS_H
#define PPERF_REPORT_PROFILE_KEPT_PROFILE_PARTS_H

#include "report/profile/kept_profile.h"

void tree_write(const struct tree *tree, struct value_writer *writer);
/* `texts`: number of texts. */
struct tree *tree_read(uint32_t texts, struct value_reader *reader);
/* `profile`: has its tree, and the ranges and threads of the times at which memory ran out. */
void memory_write(const struct memory_owners *memory, struct value_writer *writer);
struct memory_owners *memory_read(const struct profile *profile, struct value_reader *reader);

#endif
