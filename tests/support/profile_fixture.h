/* SPDX-License-Identifier: MIT
 * profile_fixture.h: Profiles a trace made in a test and finds nodes by path.
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

/* Profiles the trace and frees `builder`. `options` NULL: those of the tool without options. */
struct profile_fixture fixture_of(
	struct trace_builder *builder, const struct profile_options *options);
/* Profiles the same trace again. */
void fixture_rebuild(struct profile_fixture *fixture, const struct profile_options *options);
void fixture_free(struct profile_fixture *fixture);

/* Returns the node of a path of names joined by `/`, or NULL. */
const struct node *fixture_node(const struct profile_fixture *fixture, const char *path);
/* Fails the test unless every nanosecond and byte has exactly one owner. */
void fixture_check(const struct profile_fixture *fixture);

#endif
