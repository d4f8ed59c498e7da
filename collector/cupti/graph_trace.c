/* SPDX-License-Identifier: MIT */
#include "collector/cupti/graph_trace.h"

#include "collector/cupti/client.h"
#include "collector/cupti/client_clock.h"
#include "collector/cupti/handover.h"
#include "collector/cupti/session_state.h"
#include "collector/file/trace_file.h"
#include "collector/process/clock.h"

#define SECOND_NS UINT64_C(1000000000)
/* Graphs that start this long after the change were launched after it. */
#define QUEUE_NS SECOND_NS

_Atomic uint64_t cupti_graph_nodes;
_Atomic uint64_t cupti_graph_nodes_from_ns = UINT64_MAX;

static struct {
	atomic_bool session_on; /* the session's kinds are enabled */
	atomic_bool whole;      /* our choice */
	atomic_bool enabled;    /* GRAPH_TRACE is enabled in CUPTI */
	atomic_uint changes;    /* not yet applied */
} graphs;

/* Members of the flush thread. */
static struct {
	uint64_t began_ns; /* of the interval in which nodes are counted; 0: not begun */
	bool changed, done;
} rate;

static bool client_records_nodes(void)
{
	return cupti_client_has_enabled(CUPTI_CONCURRENT_KERNEL) ||
	       cupti_client_has_enabled(CUPTI_KERNEL) || cupti_client_has_enabled(CUPTI_MEMCPY) ||
	       cupti_client_has_enabled(CUPTI_MEMCPY_PEER) ||
	       cupti_client_has_enabled(CUPTI_MEMSET);
}

static bool should_enable(void)
{
	return cupti_client_has_enabled(CUPTI_GRAPH_TRACE) ||
	       (atomic_load(&graphs.session_on) && atomic_load(&graphs.whole) &&
		       !client_records_nodes());
}

/* Enables or disables GRAPH_TRACE. The first of several threads does so for all of them, without a
 * lock: the client may call from one of CUPTI's callbacks. */
static int apply_changes(void)
{
	const struct cupti_library *cupti = &cupti_session->library;
	unsigned seen;
	int result = CUPTI_OK;

	if (atomic_fetch_add(&graphs.changes, 1) != 0)
		return CUPTI_OK;
	do {
		bool wanted;

		seen = atomic_load(&graphs.changes); /* before the choice, which may change */
		wanted = should_enable();
		if (wanted == atomic_load(&graphs.enabled) || !cupti_runs())
			continue;
		result = wanted ? cupti->enable(CUPTI_GRAPH_TRACE)
				: cupti->disable(CUPTI_GRAPH_TRACE);
		atomic_store(&graphs.enabled, wanted && result == CUPTI_OK);
	} while (atomic_fetch_sub(&graphs.changes, seen) != seen);
	return result;
}

int cupti_graph_trace_enable(void)
{
	const enum cupti_graphs mode = cupti_session->config->graphs;

	if (mode == CUPTI_GRAPHS_NODES)
		return CUPTI_OK;
	if (!atomic_load(&graphs.whole)) /* also after a handover */
		cupti_set_state("graphs", mode == CUPTI_GRAPHS_WHOLE ? "whole" : "auto: nodes");
	if (mode == CUPTI_GRAPHS_WHOLE)
		atomic_store(&graphs.whole, true);
	if (mode == CUPTI_GRAPHS_AUTO && !atomic_load(&graphs.whole))
		atomic_store(&cupti_graph_nodes_from_ns, 0);
	atomic_store(&graphs.session_on, true);
	return apply_changes();
}

void cupti_graph_trace_disable(void)
{
	if (!atomic_exchange(&graphs.session_on, false))
		return;
	apply_changes();
}

void cupti_graph_trace_client_changed(uint32_t kind, bool enabled)
{
	if (kind == CUPTI_GRAPH_TRACE)
		atomic_store(&graphs.enabled, enabled);
	if (atomic_load_explicit(&graphs.session_on, memory_order_relaxed) &&
		!cupti_is_handed_over())
		apply_changes();
}

/* Changes from nodes to whole, and writes when and why into the trace. */
static void change_to_whole(struct cupti_session *s, uint64_t nodes_per_s)
{
	const struct trace_header *header = trace_header();
	const uint64_t now = clock_monotonic_ns();
	const double at_s = header ? (double)(now - header->start.monotonic_ns) / 1e9 : 0;
	int result;

	atomic_store(&graphs.whole, true);
	pthread_mutex_lock(&s->lock);
	result = cupti_runs() && !cupti_is_handed_over() ? apply_changes() : CUPTI_OK;
	pthread_mutex_unlock(&s->lock);
	if (result != CUPTI_OK) {
		rate.done = true;
		cupti_set_state("graphs", "auto: nodes; CUPTI refused whole graphs (%d)", result);
		return;
	}
	rate.changed = true;
	atomic_store(&cupti_graph_nodes_from_ns, client_clock_cupti_ns() + QUEUE_NS);
	cupti_set_state("graphs",
		"auto: nodes until %.3f s after the start of the trace, then whole "
		"(%llu nodes per second, limit %llu)",
		at_s, (unsigned long long)nodes_per_s,
		(unsigned long long)s->config->graph_nodes_max);
	cupti_set_state("warning.graphs",
		"From %.3f s after the start of the trace, each launch of a CUDA graph is one "
		"record without its kernels: graphs ran %llu nodes per second, more than %llu. "
		"Set PPERF_GRAPHS=nodes to record every node.",
		at_s, (unsigned long long)nodes_per_s,
		(unsigned long long)s->config->graph_nodes_max);
}

/* It is not documented whether CUPTI changes how it records graphs that are instantiated
 * already. */
static void note_nodes_remain(uint64_t nodes_per_s)
{
	rate.done = true;
	cupti_set_state("warning.graphs",
		"CUPTI still recorded %llu nodes of CUDA graphs per second after pperf had "
		"requested whole graphs, because they were instantiated before. Set "
		"PPERF_GRAPHS=whole to record whole graphs from the start.",
		(unsigned long long)nodes_per_s);
}

void cupti_graph_trace_poll(void)
{
	struct cupti_session *s = cupti_session;
	const uint64_t now = clock_monotonic_ns();
	uint64_t nodes, nodes_per_s;

	if (atomic_load(&cupti_graph_nodes_from_ns) == UINT64_MAX || rate.done)
		return;
	if (!rate.began_ns)
		rate.began_ns = now;
	if (now - rate.began_ns < SECOND_NS || !atomic_load(&cupti_graph_nodes))
		return; /* records arrive late and together: the interval includes that time */
	nodes = atomic_exchange(&cupti_graph_nodes, 0);
	nodes_per_s = nodes * 1000 / ((now - rate.began_ns) / (SECOND_NS / 1000));
	rate.began_ns = now;
	if (nodes_per_s <= s->config->graph_nodes_max)
		return;
	if (!rate.changed)
		change_to_whole(s, nodes_per_s);
	else if (!client_records_nodes())
		note_nodes_remain(nodes_per_s);
}
