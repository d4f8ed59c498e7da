/* SPDX-License-Identifier: MIT
 * cupti_guest_library.c: the CUPTI of a guest (cupti_guest.h).
 */
#include "collector/cupti/client.h"

#include "collector/cupti/session_state.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/process/signal_guard.h"

const struct cupti_library *cupti_guest_library(void)
{
	static _Atomic(struct cupti_library *) loaded;
	struct cupti_library *found = atomic_load(&loaded), *other = NULL;
	struct quiet quiet;
	char reason[4600];

	if (cupti_runs())
		return &cupti_session->library;
	if (found)
		return found;
	found = kept_memory(sizeof *found);
	if (!found)
		return NULL;
	quiet_begin(&quiet);
	cupti_load(found, NULL, NULL, reason, sizeof reason); /* a version that we cannot use is good enough for its own client */
	quiet_end(&quiet);
	if (atomic_compare_exchange_strong(&loaded, &other, found))
		return found;
	memory_return(found, sizeof *found);
	return other;
}
