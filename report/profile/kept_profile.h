/* SPDX-License-Identifier: MIT
 * Writes the result of the profile pass to a file, and reads it back: all that a view reads of a
 * profile without another pass. What only the pass itself needs is left out: the tables of
 * addresses and of mapped memory, and the maps from the trace's ids.
 *
 * The members of structs are written as they are in memory. A struct that gets a pointer must get
 * code here, so the sizes of these structs are checked when this is compiled.
 */
#ifndef PPERF_REPORT_PROFILE_KEPT_PROFILE_H
#define PPERF_REPORT_PROFILE_KEPT_PROFILE_H

#include "report/base/value_file.h"
#include "report/profile/profile.h"

/* Writes a profile of a whole trace, without a target or an observer. The texts are written
 * separately. */
void profile_write(const struct profile *profile, struct value_writer *writer);
/* Reads a profile of the trace of `reader` by the options `options`. `texts`: as when it was
 * written. After a failure of `from` the result may only be freed. */
struct profile *profile_read(struct trace_reader *reader, struct string_table *texts,
	const struct profile_options *options, struct value_reader *from);

#endif
