/* SPDX-License-Identifier: MIT
 * Serves several observers in one pass over the trace.
 *
 *	struct joined_observers joined = { .observers = { &one, &other }, .count = 2 };
 *	const struct profile_observer observer = observers_join(&joined);
 */
#ifndef PPERF_REPORT_PROFILE_JOINED_OBSERVERS_H
#define PPERF_REPORT_PROFILE_JOINED_OBSERVERS_H

#include "report/profile/profile.h"

#define JOINED_OBSERVERS_MAX 12u

#define JOINED_CALLBACKS 20u

/* The observers that have a callback: most have few. */
struct joined_callback {
	const struct profile_observer *observers[JOINED_OBSERVERS_MAX];
	unsigned count;
};

struct joined_observers {
	const struct profile_observer *observers[JOINED_OBSERVERS_MAX];
	unsigned count;
	struct joined_callback with[JOINED_CALLBACKS]; /* private: by callback */
};

/* Returns an observer that calls the callbacks of each, in their order. A callback that none has is
 * not set. `joined` must outlive the pass. */
struct profile_observer observers_join(struct joined_observers *joined);

#endif
