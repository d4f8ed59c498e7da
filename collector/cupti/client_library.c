/* SPDX-License-Identifier: MIT */
#include "collector/cupti/client.h"

#include "collector/cupti/session_state.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/process/signal_guard.h"

/* A version that pperf cannot use still serves its own client. */
static void load_for_client(struct cupti_library *library)
{
	struct signal_guard guard;
	char reason[4600];

	signal_guard_begin(&guard);
	cupti_load(library, NULL, NULL, reason, sizeof reason);
	signal_guard_end(&guard);
}

const struct cupti_library *cupti_client_library(void)
{
	static _Atomic(struct cupti_library *) loaded;
	struct cupti_library *found = atomic_load(&loaded), *other = NULL;

	if (cupti_runs())
		return &cupti_session->library;
	if (found)
		return found;
	found = fork_kept_alloc(sizeof *found);
	if (!found)
		return NULL;
	load_for_client(found);
	if (atomic_compare_exchange_strong(&loaded, &other, found))
		return found;
	fork_kept_free(found, sizeof *found);
	return other;
}
