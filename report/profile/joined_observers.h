/* SPDX-License-Identifier: MIT
 * Serves several observers in one pass over the trace.
 *
 *	struct joined_observers joined = { .observers = { &one, &other }, .count = 2 };
 *	const struct profile_observer observer = observers_join(&joined);
 */
#ifndef PPERF_REPORT_PROFILE_JOINED_OBSERVERS_H
#define PPERF_REPORT_PROFILE_JOINED_OBSERVERS_H

#include "report/profile/profile.h"

#define JOINED_OBSERVERS_MAX 10u

struct joined_observers {
	const struct profile_observer *observers[JOINED_OBSERVERS_MAX];
	unsigned count;
};

/* Returns an observer that calls the callbacks of each, in their order. A callback that none has is
 * not set. `joined` must outlive the pass. */
struct profile_observer observers_join(const struct joined_observers *joined);

#endif
