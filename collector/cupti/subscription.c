/* SPDX-License-Identifier: MIT */
#include "collector/cupti/subscription.h"

#include "collector/cupti/call_ids.h"
#include "collector/cupti/client.h"
#include "collector/cupti/kernel_names.h"
#include "collector/cupti/graph_trace.h"
#include "collector/cupti/session_state.h"

#include <stdio.h>
#include <string.h>

/* The record kinds that are enabled, with their names in messages. CUDA_EVENT is not: the event and
 * the CUDA stream of a cuEventRecord are known from its callback, and CUPTI's record adds a time on
 * the device, which 13.0 and later do not measure and which costs GPU work on 12.8 and 12.9. */
static const struct {
	int kind;
	const char *what;
} kinds[] = {
	{ CUPTI_CONCURRENT_KERNEL, "kernels" },
	{ CUPTI_MEMCPY, "copies" },
	{ CUPTI_MEMCPY_PEER, "copies between devices" },
	{ CUPTI_MEMSET, "memsets" },
	{ CUPTI_MEMORY, "memory" },
	{ CUPTI_SYNCHRONIZATION, "synchronisation" },
	{ CUPTI_OVERHEAD, "overhead" },
};

static const uint32_t resources[] = { CUPTI_CONTEXT_CREATED, CUPTI_CONTEXT_ENDS,
	CUPTI_STREAM_CREATED, CUPTI_MODULE_LOADED, CUPTI_MODULE_UNLOAD, CUPTI_NODE_CREATED,
	CUPTI_GRAPH_EXEC_CREATED, CUPTI_NODE_CLONED };

void cupti_note_refusal(struct cupti_session *s, const char *what, int result)
{
	size_t length = strlen(s->partial);

	snprintf(s->partial + length, sizeof s->partial - length, "%s%s (%d)",
		length ? ", " : "CUPTI refused ", what, result);
}

void cupti_set_source(const struct cupti_session *s)
{
	if (*s->partial)
		cupti_set_state("source.cupti", "partial: %s", s->partial);
	else
		cupti_set_state("source.cupti", "on");
}

void cupti_withdraw_overdue(struct cupti_session *s)
{
	if (s->overdue_stated_ns && cupti_runs() && !atomic_load(&s->cupti_failed))
		cupti_set_source(s);
	s->overdue_stated_ns = 0;
}

bool cupti_owns_callback(int domain, uint32_t id)
{
	bool ours = domain == CUPTI_STATE && id >= CUPTI_FATAL_ERROR && id <= CUPTI_WARNING;

	ours |= call_ids_owns_callback(domain, id);
	for (const uint16_t *call = cupti_session->config->calls(); domain == CUPTI_DRIVER && *call;
		call++)
		ours |= *call == id;
	for (size_t i = 0; domain == CUPTI_RESOURCE && i < sizeof resources / sizeof *resources;
		i++)
		ours |= resources[i] == id;
	return ours;
}

/* An invalid callback id is no loss: this version does not have the function, so the program cannot
 * call it. */
void cupti_enable_callbacks(struct cupti_session *s)
{
	const struct cupti_library *cupti = &s->library;
	int refused = CUPTI_OK, result;

	for (const uint16_t *id = s->config->calls(); *id; id++)
		if ((result = cupti->enable_callback(1, s->subscriber, CUPTI_DRIVER, *id)) !=
				CUPTI_OK &&
			result != CUPTI_INVALID_PARAMETER)
			refused = result;
	if (refused)
		cupti_note_refusal(s, "callbacks for calls", refused);
	refused = CUPTI_OK;
	for (size_t i = 0; i < sizeof resources / sizeof *resources; i++)
		if ((result = cupti->enable_callback(
			     1, s->subscriber, CUPTI_RESOURCE, resources[i])) != CUPTI_OK)
			refused = result;
	if (refused)
		cupti_note_refusal(s, "callbacks for contexts and graphs", refused);
	for (uint32_t id = CUPTI_FATAL_ERROR; id <= CUPTI_WARNING; id++)
		cupti->enable_callback(1, s->subscriber, CUPTI_STATE, id);
}

bool cupti_owns_kind(uint32_t kind)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if ((uint32_t)kinds[i].kind == kind)
			return true;
	return kind == CUPTI_CONTEXT;
}

/* Enables records of the calls with callbacks, because CUPTI gives them no ids otherwise. */
static void enable_call_records(struct cupti_session *s)
{
	for (const uint16_t *id = s->config->calls(); *id && s->library.enable_driver_api; id++)
		s->library.enable_driver_api(*id, 1);
	if (!s->library.enable_driver_api)
		s->library.enable(CUPTI_DRIVER_CALL);
}

void cupti_request_ids(void)
{
	struct cupti_session *s = cupti_session;

	if (__builtin_expect(atomic_load(&s->ids) != CUPTI_IDS_MISSING, 1))
		return;
	pthread_mutex_lock(&s->lock);
	if (cupti_runs() && !atomic_load(&s->handed_over)) {
		atomic_store(&s->ids, CUPTI_IDS_REQUESTED);
		enable_call_records(s);
		cupti_set_state("warning.cupti_no_ids",
			"CUPTI %u gave the first GPU records no id of their call, so they have no "
			"launch in this trace. Records of driver calls were enabled to get ids, "
			"which makes each launch slower; use another release of CUDA.",
			s->library.version);
	}
	pthread_mutex_unlock(&s->lock);
}

void cupti_time_calls(void)
{
	struct cupti_session *s = cupti_session;

	if (atomic_load(&s->ids) == CUPTI_IDS_REQUESTED)
		enable_call_records(s);
	if (!s->library.enable_driver_api)
		return;
	for (const uint16_t *id = s->config->timed_calls; *id; id++) {
		s->library.enable_driver_api(*id, 1);
		if (*id < 1024)
			s->timed[*id / 64] |= UINT64_C(1) << *id % 64;
	}
}

void cupti_set_all_syncs(struct cupti_session *s, bool on)
{
	if (s->library.enable_all_syncs)
		s->library.enable_all_syncs(on);
}

void cupti_enable_kinds(struct cupti_session *s)
{
	const struct cupti_library *cupti = &s->library;
	int result;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if ((result = cupti->enable(kinds[i].kind)) != CUPTI_OK)
			cupti_note_refusal(s, kinds[i].what, result);
	cupti_set_all_syncs(s, false);
	if ((result = cupti_graph_trace_enable()) != CUPTI_OK)
		cupti_note_refusal(s, "whole graphs", result);
	/* Also records contexts that exist already, if the program created them before the
	 * session. */
	if (!cupti->enable_and_dump || cupti->enable_and_dump(CUPTI_CONTEXT) != CUPTI_OK)
		cupti->enable(CUPTI_CONTEXT);
	cupti_time_calls();
}

void cupti_enable_all(void)
{
	const size_t refused = strlen(cupti_session->partial);

	kernel_names_module_loaded(); /* unnoticed, while CUPTI was handed over */
	cupti_enable_callbacks(cupti_session);
	cupti_enable_kinds(cupti_session);
	if (strlen(cupti_session->partial) > refused)
		cupti_set_source(cupti_session);
}

static void disable_callback(
	struct cupti_session *s, int domain, uint32_t id, cupti_callback_used *is_used)
{
	if (!is_used(domain, id))
		s->library.enable_callback(0, s->subscriber, domain, id);
}

void cupti_disable_kinds(struct cupti_session *s)
{
	cupti_graph_trace_disable();
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds && cupti_runs(); i++)
		s->library.disable(kinds[i].kind);
}

/* Disables our records of driver calls, but none that the client has enabled. */
static void release_calls(struct cupti_session *s)
{
	const bool requested = atomic_load(&s->ids) == CUPTI_IDS_REQUESTED;

	if (!cupti_client_has_enabled_calls())
		s->library.disable(CUPTI_DRIVER_CALL); /* also disables single calls */
	else if (s->library.enable_driver_api)
		for (uint32_t cbid = 0; cbid < 1024; cbid++)
			if ((cupti_times_call(cbid) ||
				    (requested && cupti_owns_callback(CUPTI_DRIVER, cbid))) &&
				!cupti_client_has_enabled_call(cbid))
				s->library.enable_driver_api(cbid, 0);
}

void cupti_release_kinds(struct cupti_session *s)
{
	cupti_graph_trace_disable();
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (cupti_runs() && !cupti_client_has_enabled((uint32_t)kinds[i].kind))
			s->library.disable(kinds[i].kind);
	if (!cupti_client_has_enabled(CUPTI_CONTEXT))
		s->library.disable(CUPTI_CONTEXT);
	release_calls(s);
}

/* The callbacks for CUPTI's own failures stay enabled. */
void cupti_disable_all(cupti_callback_used *is_used)
{
	struct cupti_session *s = cupti_session;

	call_ids_follow_runtime(false);
	call_ids_follow_own(false);
	for (const uint16_t *id = s->config->calls(); *id; id++)
		disable_callback(s, CUPTI_DRIVER, *id, is_used);
	for (size_t i = 0; i < sizeof resources / sizeof *resources; i++)
		disable_callback(s, CUPTI_RESOURCE, resources[i], is_used);
	cupti_release_kinds(s);
}
