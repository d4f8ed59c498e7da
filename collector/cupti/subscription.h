/* SPDX-License-Identifier: MIT
 * Enables and disables what our session uses of CUPTI: record kinds, callbacks, and times of driver
 * functions.
 */
#ifndef PPERF_COLLECTOR_CUPTI_SUBSCRIPTION_H
#define PPERF_COLLECTOR_CUPTI_SUBSCRIPTION_H

#include "collector/cupti/session_state.h"

/* Whether our session enables records of this kind. */
bool cupti_owns_kind(uint32_t kind);
/* Whether our session enables this callback. */
bool cupti_owns_callback(int domain, uint32_t id);

/* Enables the times of driver functions. Called again if another client of CUPTI may have disabled
 * them. */
void cupti_time_calls(void);

/* Enables records of driver calls if GPU records came without ids (enum cupti_ids). Called ten
 * times a second. */
void cupti_request_ids(void);

/* These act on the session `s` under its lock. Refusals are noted. */
void cupti_enable_callbacks(struct cupti_session *s);
void cupti_enable_kinds(struct cupti_session *s);
void cupti_disable_kinds(struct cupti_session *s);
/* Disables what the session has enabled and another client has not. */
void cupti_release_kinds(struct cupti_session *s);

/* Sets whether SYNCHRONIZATION has a record also for each event and stream query that found work
 * unfinished. CUPTI's default is true; our session needs none. */
void cupti_set_all_syncs(struct cupti_session *s, bool on);

/* Enables everything that the session needs. Under the session's lock. */
void cupti_enable_all(void);

/* Whether another client uses this callback. */
typedef bool cupti_callback_used(int domain, uint32_t id);

/* Disables everything that the session enabled, except what another client has enabled, too: kinds,
 * calls, and callbacks for which `is_used` returns true.
 * Under the session's lock. */
void cupti_disable_all(cupti_callback_used *is_used);

/* Appends a refusal to the text for cupti_set_source(). Under the session's lock. */
void cupti_note_refusal(struct cupti_session *s, const char *what, int result);
/* Writes the state of the source "cupti" into the trace: on, or partial with what was refused.
 * Under the session's lock. */
void cupti_set_source(const struct cupti_session *s);
/* Withdraws the statement that records are overdue, if META has it. If CUPTI has reported a failure
 * of its own since, that one stays. Under the session's lock. */
void cupti_withdraw_overdue(struct cupti_session *s);

#endif
