/* SPDX-License-Identifier: MIT */
#include "report/views/idle_functions.h"
#include <string.h>

#define UNRESOLVED "(not resolved)"

void idle_set_samples(
	struct computed_row *computed, const struct host_in_gaps *host, uint64_t samples)
{
	if (host->samples)
		computed_row_set_unsigned(computed, "samples", samples);
}

static void name_function(
	struct computed_row *computed, struct process *process, const struct host_function *one)
{
	const struct trace_text function = reader_name(process->reader, one->function),
				module = reader_name(process->reader, one->module);

	computed_row_format_name(computed, "%.*s%s%.*s%s",
		function.length ? (int)function.length : (int)strlen(UNRESOLVED),
		function.length ? function.bytes : UNRESOLVED, module.length ? " [" : "",
		(int)module.length, module.length ? module.bytes : "", module.length ? "]" : "");
	if (module.length)
		computed_row_set_text(computed, "module", module.bytes, module.length);
}

static struct computed_row *samples_row(
	const struct host_in_gaps *host, uint32_t node, const char *kind, uint64_t samples)
{
	struct computed_row *computed = computed_row_new(host->process, 0, kind);

	computed_row_set_unsigned(computed, "samples", samples);
	computed_row_set_share(computed, "sample_share", samples, host->nodes[node].samples);
	return computed;
}

void idle_add_functions(struct rows *rows, const struct host_in_gaps *host, uint32_t node,
	uint32_t top, uint32_t parent)
{
	uint64_t others = 0, functions = 0;

	for (size_t i = 0; i < host->function_count; i++) {
		const struct host_function *one = &host->functions[i];
		struct computed_row *computed;

		if (one->node != node)
			continue;
		if (functions++ >= top) {
			others += one->samples;
			continue;
		}
		computed = samples_row(host, node, "function", one->samples);
		name_function(computed, host->process, one);
		computed_row_add(rows, computed, parent);
	}
	if (others) {
		struct computed_row *computed = samples_row(host, node, "functions", others);

		computed_row_format_name(
			computed, "(%llu other functions)", (unsigned long long)(functions - top));
		computed_row_add(rows, computed, parent);
	}
}
