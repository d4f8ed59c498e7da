/* SPDX-License-Identifier: MIT */
#include "report/analysis/critical_path/path_input.h"

#include "report/base/alloc.h"

#include <stdlib.h>

static const char path_input_key; /* the key of process_attach() */

static void release_path_input(void *data)
{
	struct path_input *input = data;

	activities_free(input->activities);
	range_log_free(input->ranges);
	free(input);
}

static struct path_input begin_path_input(struct shared_pass *pass)
{
	const struct path_input input = { .activities = activities_read_once_in(pass),
		.ranges = range_log_new() };
	const struct profile_observer observer = range_log_observer(input.ranges);

	/* a trace without calls has no path */
	if (pass->count || process_has_records(pass->process))
		shared_pass_add(pass, &observer, NULL);
	return input;
}

void path_input_read_in(struct shared_pass *pass)
{
	struct path_input *input = xcalloc(sizeof *input);

	*input = begin_path_input(pass);
	process_attach(pass->process, &path_input_key, input, release_path_input);
}

struct path_input path_input_take(struct process *process)
{
	struct path_input *attached = process_attached(process, &path_input_key), input;
	struct shared_pass pass = { .process = process };

	if (attached && attached->ranges) {
		input = *attached;
		*attached = (struct path_input){ .ranges = NULL };
	} else {
		input = begin_path_input(&pass);
		shared_pass_run(&pass);
	}
	range_log_rewind(input.ranges);
	return input;
}
