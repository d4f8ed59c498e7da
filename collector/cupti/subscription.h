/* SPDX-License-Identifier: MIT
 * Enables and disables what our session asks of CUPTI: record kinds, callbacks, and times of driver functions.
 */
#ifndef PPERF_COLLECTOR_CUPTI_SUBSCRIPTION_H
#define PPERF_COLLECTOR_CUPTI_SUBSCRIPTION_H

#include "collector/cupti/session_state.h"

/* Whether our session asks for records of this kind, or for this callback. */
bool cupti_owns_kind(uint32_t kind);
bool cupti_owns_callback(int domain, uint32_t id);

/* Asks for the times of driver functions; again where another client of CUPTI has disabled them. */
void cupti_time_calls(void);

void cupti_enable_callbacks(struct cupti_session *s);
void cupti_enable_kinds(struct cupti_session *s);
void cupti_disable_kinds(struct cupti_session *s);

/* Enables all that the session needs. Under the session's lock. */
void cupti_enable_all(void);

/* Whether somebody else uses this callback. */
typedef bool cupti_callback_used(int domain, uint32_t id);

/* Disables all that the session enabled, except callbacks that `is_used` names. Under the session's lock. */
void cupti_disable_all(cupti_callback_used *is_used);

/* Notes what CUPTI refused, for cupti_set_source. Under the session's lock. */
void cupti_note_refusal(struct cupti_session *s, const char *what, int result);
/* Writes the state of the source "cupti" into the trace: on, or partial with what was refused. Under the session's lock. */
void cupti_set_source(const struct cupti_session *s);

/* Buffers are owed and do not come: asks for a record that CUPTI has at once, and says so in the trace if that does not come
 * either. Under the session's lock. */
void cupti_check_stalled(void);
/* Takes that back if one has come since: CUPTI may keep a buffer in which a record is not complete, as long as a kernel runs.
 * Under the session's lock. */
void cupti_clear_stalled(void);

#endif
