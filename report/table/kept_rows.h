/* SPDX-License-Identifier: MIT
 *
 * Keeps the computed rows of a view in the cache (report/cache/cache.h), so that the next command
 * on the same trace need not read it again for them. Formats, columns, width and colours of the
 * output are not part of what is kept, and may differ.
 *
 *	struct kept_rows kept = kept_rows_begin(options, process, rows, "idle", true, NULL);
 *
 *	if (!kept.found) {
 *		... add rows ...
 *		kept_rows_end(&kept);
 *	}
 *
 * Rows are kept of whole traces that ended, as the default options select and name what is in them.
 * They are not kept if one of them is no computed row, is of another tree than that of the process,
 * or may have the name of a function of a library on this machine.
 */
#ifndef PPERF_REPORT_TABLE_KEPT_ROWS_H
#define PPERF_REPORT_TABLE_KEPT_ROWS_H

#include "report/cache/cache.h"
#include "report/table/view.h"

#define KEPT_ROWS_BYTES_MAX (64u << 20)

struct kept_rows {
	struct cache_key key;
	struct process *process;
	struct processes *processes; /* NULL: no warnings are kept */
	size_t warnings;             /* number of warnings before the rows were added */
	struct rows *rows;
	struct rows before; /* `rows` without those that are to be kept */
	bool found;         /* the rows were kept, and are added */
};

/* Adds the rows that were kept for the view `view`. `is_arranged`: they depend on how the options
 * sort and prune rows. `processes`: the process alone, if the view adds warnings to it, else
 * NULL. */
struct kept_rows kept_rows_begin(const struct options *options, struct process *process,
	struct rows *rows, const char *view, bool is_arranged, struct processes *processes);
/* Keeps the rows and warnings that were added since kept_rows_begin. */
void kept_rows_end(const struct kept_rows *kept);

/* For tests: writes the rows and warnings that were added as bytes, which the caller frees. Returns
 * NULL if they cannot be kept. */
char *kept_rows_encode(const struct kept_rows *kept, size_t *bytes);
/* For tests: adds what kept_rows_encode wrote. Returns false, without a change, if it is
 * damaged. */
bool kept_rows_decode(const struct kept_rows *kept, const char *bytes, size_t count);

#endif
