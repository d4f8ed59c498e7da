/* SPDX-License-Identifier: MIT
 *
 * Sentences on the CPU samples of a process: how many there are, what the threads' clocks say, and
 * what is uncertain.
 */
#ifndef PPERF_REPORT_VIEWS_FUNCTIONS_NOTES_H
#define PPERF_REPORT_VIEWS_FUNCTIONS_NOTES_H

#include "report/run/process.h"
#include "report/text/paragraph.h"

/* What the CPU clocks of the sampled threads counted, and the part of it that samples represent. */
struct sampled_clocks {
	uint64_t clock_ns, sampled_ns;
	uint32_t threads; /* that have samples or a clock */
};
struct sampled_clocks sampled_clocks_of(const struct process *process);

/* Adds `N samples of T of CPU time in M threads`. */
void functions_add_count(struct paragraph *line, const struct process *process);

#endif
