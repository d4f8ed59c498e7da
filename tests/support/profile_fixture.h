/* SPDX-License-Identifier: MIT
 *
 * Builds the profile of a trace made in a test, and finds its nodes by path.
 */
#ifndef PPERF_TESTS_SUPPORT_PROFILE_FIXTURE_H
#define PPERF_TESTS_SUPPORT_PROFILE_FIXTURE_H

#include "report/profile/profile.h"
#include "tests/support/run_report.h"

struct folded {
	struct trace_reader *reader;
	struct string_table *texts;
	struct profile *profile;
};

/* Profiles the trace of `builder`, and frees the builder. With NULL the options are those of the
 * tool without options. */
struct folded folded_of(struct trace_builder *builder, const struct profile_options *options);
/* Profiles the same trace again. */
void folded_again(struct folded *folded, const struct profile_options *options);
void folded_free(struct folded *folded);

/* Returns the node of a path of names joined by `/`, or NULL. */
const struct node *folded_node(const struct folded *folded, const char *path);
/* Fails the test if a nanosecond or byte has several owners or none. */
void folded_check(const struct folded *folded);

#endif
