/* SPDX-License-Identifier: MIT
 * profile_fixture.h: a trace made in a test, folded, and its nodes by path.
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

/* Frees the builder. options NULL: as the tool without options. */
struct folded folded_of(struct trace_builder *builder, const struct profile_options *options);
/* One more fold of the same trace. */
void folded_again(struct folded *folded, const struct profile_options *options);
void folded_free(struct folded *folded);

/* The node of a path of names joined by `/`; NULL: there is none. */
const struct node *folded_node(const struct folded *folded, const char *path);
/* Fails the test if anything is owned twice or not at all. */
void folded_check(const struct folded *folded);

#endif
