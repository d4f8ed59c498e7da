/* SPDX-License-Identifier: MIT */
#include "report/analysis/shared_pass.h"
#include <assert.h>

void shared_pass_add(
	struct shared_pass *pass, const struct profile_observer *observer, shared_pass_end *end)
{
	assert(pass->count < JOINED_OBSERVERS_MAX);
	pass->observers[pass->count] = *observer;
	pass->ends[pass->count++] = end;
}

/* Returns the observers as one. NULL: there are none. */
static const struct profile_observer *observer_of_all(struct shared_pass *pass)
{
	if (pass->count < 2)
		return pass->count ? &pass->observers[0] : NULL;
	for (unsigned i = 0; i < pass->count; i++)
		pass->joined.observers[i] = &pass->observers[i];
	pass->joined.count = pass->count;
	pass->all = observers_join(&pass->joined);
	return &pass->all;
}

static void end_all(struct shared_pass *pass, const struct profile *profile)
{
	for (unsigned i = 0; i < pass->count; i++)
		if (pass->ends[i])
			pass->ends[i](pass->observers[i].context, profile);
	pass->count = 0;
}

void shared_pass_run(struct shared_pass *pass)
{
	struct process *process = pass->process;
	const struct profile_observer *observer = observer_of_all(pass);
	struct profile_options options;
	struct profile *profile;

	if (!observer)
		return;
	options = profile_options_for_observer(process->profile, observer);
	profile = profile_build(process->reader, process->texts, &options);
	end_all(pass, profile);
	profile_free(profile);
}

/* ---- the pass that makes the profile ---- */

static const struct profile_observer *begin_join(
	void *context, const struct options *options, struct process *process)
{
	struct shared_pass *pass = context;

	pass->process = process;
	if (pass->add)
		(*pass->add)(options, pass);
	return observer_of_all(pass);
}

static void end_join(void *context, const struct profile *profile)
{
	end_all(context, profile);
}

struct process_join shared_pass_join(struct shared_pass *pass)
{
	return (struct process_join){ .context = pass, .begin = begin_join, .end = end_join };
}
