/* SPDX-License-Identifier: MIT */
#include "report/analysis/shared_pass.h"

void shared_pass_add(
	struct shared_pass *pass, const struct profile_observer *observer, shared_pass_end *end)
{
	pass->observers[pass->count] = *observer;
	pass->ends[pass->count++] = end;
}

void shared_pass_run(struct shared_pass *pass)
{
	struct process *process = pass->process;
	struct joined_observers joined = { .count = pass->count };
	struct profile_observer all;
	struct profile_options options;
	struct profile *profile;

	if (!pass->count)
		return;
	for (unsigned i = 0; i < pass->count; i++)
		joined.observers[i] = &pass->observers[i];
	all = observers_join(&joined);
	options = profile_options_for_observer(
		process->profile, pass->count > 1 ? &all : &pass->observers[0]);
	profile = profile_build(process->reader, process->texts, &options);
	for (unsigned i = 0; i < pass->count; i++)
		if (pass->ends[i])
			pass->ends[i](pass->observers[i].context, profile);
	profile_free(profile);
	pass->count = 0;
}
