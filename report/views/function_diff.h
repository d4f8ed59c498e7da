/* SPDX-License-Identifier: MIT
 *
 * Compares the CPU samples of two runs by function, line or library: the share of the samples'
 * CPU time that each has itself, without what it called.
 *
 * Functions of both runs are the same if text shows them equally: by name, and library or file. A
 * file is named without its folders, so that two copies of a program are compared.
 *
 * Each share is tested (report/stats/proportion_test.h), and p is adjusted for all that were
 * tested. A change is significant if p is below CHANGE_TEST_FDR and the shares differ by
 * FUNCTION_DIFF_MIN_SHIFT or more: samples do not show what else differs between two runs.
 */
#ifndef PPERF_REPORT_VIEWS_FUNCTION_DIFF_H
#define PPERF_REPORT_VIEWS_FUNCTION_DIFF_H

#include "report/analysis/compared_run.h"

#define FUNCTION_DIFF_METHOD "two-proportion z test"
#define FUNCTION_DIFF_MIN_SHIFT 0.01 /* of all samples */

struct function_change {
	uint32_t label, name; /* texts of the comparison */
	uint8_t kind;         /* enum node_kind */
	uint64_t samples[2], cpu_ns[2];
	double share[2];
	struct change_test test;
	bool significant;
};

struct function_diff {
	struct string_table *texts;
	struct compared_run sides[2];
	uint64_t samples[2], cpu_ns[2]; /* of all */
	struct function_change *all;    /* the largest change of a share first */
	size_t count, room;
	size_t tested, significant;
};

/* Reads and compares options->files. Ends the program with STATUS_UNREADABLE if one of them has no
 * CPU samples. */
struct function_diff *function_diff_read(const struct options *options);
void function_diff_free(struct function_diff *diff);

#endif
