/* SPDX-License-Identifier: MIT
 *
 * Builds the profile of a trace made in a test, and finds its nodes by path.
 */
#ifndef PPERF_TESTS_SUPPORT_PROFILE_FIXTURE_H
#define PPERF_TESTS_SUPPORT_PROFILE_FIXTURE_H

#include "report/profile/profile.h"
#include "tests/support/run_report.h"

struct profile_fixture {
	struct trace_reader *reader;
	struct string_table *texts;
	struct profile *profile;
};

/* Frees the builder. options NULL: as the tool without options. */
struct profile_fixture fixture_of(
	struct trace_builder *builder, const struct profile_options *options);
/* One more fold of the same trace. */
void fixture_rebuild(struct profile_fixture *fixture, const struct profile_options *options);
void fixture_free(struct profile_fixture *fixture);

/* The node of a path of names joined by `/`; NULL: there is none. */
const struct node *fixture_node(const struct profile_fixture *fixture, const char *path);
/* Fails the test if anything is owned twice or not at all. */
void fixture_check(const struct profile_fixture *fixture);

#endif
