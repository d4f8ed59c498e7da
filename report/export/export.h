/* SPDX-License-Identifier: MIT
 *
 * Writes traces in the formats of other tools. Each format is an entry in a table and a file with
 * its function. A format writes while it reads, so its memory does not depend on the number of
 * events.
 */
#ifndef PPERF_REPORT_EXPORT_EXPORT_H
#define PPERF_REPORT_EXPORT_EXPORT_H

#include "report/run/process.h"
#include "report/text/output.h"

struct export_format {
	const char *name;    /* as the user types it; NULL: end of the list */
	const char *summary; /* what reads it */
	const char *ending;  /* of the file's name */
	bool is_compressed;  /* the file is a gzip file */
	bool is_of_tree;     /* it is made of call paths, to which functions of samples are added */
	/* Writes the processes that are shown. */
	void (*write)(
		const struct options *options, struct processes *processes, struct output *out);
};

extern const struct export_format export_formats[];

/* The view `export`: writes the format given->subject. */
int export_view(const struct options *given);

void export_folded(const struct options *options, struct processes *processes, struct output *out);
void export_speedscope(
	const struct options *options, struct processes *processes, struct output *out);
void export_pprof(const struct options *options, struct processes *processes, struct output *out);
void export_dot(const struct options *options, struct processes *processes, struct output *out);
void export_graph(const struct options *options, struct processes *processes, struct output *out);
void export_chrome(const struct options *options, struct processes *processes, struct output *out);
void export_sqlite(const struct options *options, struct processes *processes, struct output *out);
void export_opprof(const struct options *options, struct processes *processes, struct output *out);
void export_perfetto(
	const struct options *options, struct processes *processes, struct output *out);

#endif
