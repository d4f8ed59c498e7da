/* SPDX-License-Identifier: MIT
 *
 * Says in words what bounds a run.
 */
#include "report/diagnose/run_bound.h"
#include "report/analysis/step_idle.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/base/compare.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The verdict in words: what bounds the run, and what the GPU does. %s: share of the time. That of
 * BOUND_EVENT and BOUND_UNEXPLAINED is made by say_waiting(). */
static const char *const sentences[BOUND_COUNT] = {
	[BOUND_COMPUTE] = "The run is bound by the GPU's kernels, which compute for %s of the time",
	[BOUND_BANDWIDTH] = "The run is bound by the GPU's kernels, which run for %s of the time, "
			    "and most of these by memory bandwidth",
	[BOUND_COMMUNICATION] = "The run is bound by exposed communication: for %s of the time the "
				"GPU communicates and computes nothing",
	[BOUND_COPIES] = "The run is bound by copies: for %s of the time the GPU only copies, or "
			 "waits for a copy call of the host",
	[BOUND_COPY_CALLS] =
		"The run is bound by copy calls: for %s of the time the GPU waits for a "
		"copy call of the host, or only copies",
	[BOUND_LAUNCH] =
		"The run is bound by late launches: for %s of the time the GPU is idle because the "
		"host has not launched its next operation",
	[BOUND_HOST] =
		"The run is bound by late launches: for %s of the time the GPU waits for the host "
		"program",
	[BOUND_GAPS] = "The run is bound by gaps between kernels: for %s of the time the GPU is "
		       "idle for microseconds between operations that were launched in time",
	[BOUND_DATA] = "The run is bound by data loading: for %s of the time the GPU is idle while "
		       "the next batch is fetched",
	[BOUND_COMPILATION] = "The run is bound by compilation: for %s of the time the GPU is idle "
			      "while the host compiles",
	[BOUND_FIRST] = "The run is bound by first calls: for %s of the time the GPU is idle while "
			"the host is in calls that take much longer at first than later",
	[BOUND_ALLOCATION] = "The run is bound by allocation: for %s of the time the GPU is idle "
			     "while the host allocates or frees memory",
	[BOUND_SYNC] = "The run is bound by synchronisation: for %s of the time the GPU is idle, "
		       "as the host had waited for it before it launched more",
	[BOUND_UNKNOWN] = "What bounds the run cannot be said: for %s of the time the trace does "
			  "not show what the GPU did, or why it was idle",
	[BOUND_NOTHING] = "Nothing in particular bounds the run; the kernels compute for %s of the "
			  "time",
};

/* Words of the command that shows more, between `pperf-report` and the trace. */
static const char *const views[BOUND_COUNT] = { [BOUND_COMPUTE] = "categories",
	[BOUND_BANDWIDTH] = "roofline",
	[BOUND_COMMUNICATION] = "overlap",
	[BOUND_COPIES] = "overlap",
	[BOUND_COPY_CALLS] = "idle",
	[BOUND_LAUNCH] = "idle",
	[BOUND_HOST] = "idle",
	[BOUND_GAPS] = "idle",
	[BOUND_DATA] = "idle",
	[BOUND_COMPILATION] = "idle",
	[BOUND_FIRST] = "idle",
	[BOUND_ALLOCATION] = "api",
	[BOUND_SYNC] = "idle",
	[BOUND_EVENT] = "queue",
	[BOUND_UNEXPLAINED] = "queue",
	[BOUND_UNKNOWN] = "idle",
	[BOUND_NOTHING] = "categories",
	[BOUND_UNJUDGED] = "info" };

/* Appends to the evidence. */
__attribute__((format(printf, 2, 3))) static void add_evidence(
	struct finding *text, const char *format, ...)
{
	const size_t used = strlen(text->evidence);
	va_list list;

	va_start(list, format);
	vsnprintf(text->evidence + used, sizeof text->evidence - used, format, list);
	va_end(list);
}

/* Appends to the sentence. */
__attribute__((format(printf, 2, 3))) static void add_words(
	struct finding *text, const char *format, ...)
{
	const size_t used = strlen(text->sentence);
	va_list list;

	va_start(list, format);
	vsnprintf(text->sentence + used, sizeof text->sentence - used, format, list);
	va_end(list);
}

/* Returns the class that is judged together with `class`, if both take some time. */
static enum bound shown_partner(const struct run_bound *bound, enum bound class)
{
	const enum bound partner = run_bound_partner(class);

	return partner && diagnose_is_share(bound->ns[class], bound->whole_ns, 1) &&
			       diagnose_is_share(bound->ns[partner], bound->whole_ns, 1)
		       ? partner
		       : BOUND_COUNT;
}

/* Returns the name of a class in a sentence: the view `idle` calls the causes so. */
static const char *shown_name(enum bound class)
{
	return class == BOUND_LAUNCH ? "launch-bound"
	       : class == BOUND_HOST ? "host-bound"
				     : bound_name(class);
}

/* Writes the share of the classes launch and host together, and of their parts, with the names and
 * figures of the view `idle`. */
static void list_launch_share(struct diagnosis *diagnosis, const struct run_bound *bound,
	enum bound class, struct finding *text)
{
	const struct {
		const char *name;
		uint64_t ns;
	} parts[] = { { "launch-bound", bound->launch_parts.launch_ns },
		{ "host-bound", bound->launch_parts.host_ns },
		{ "launch latency", bound->launch_parts.latency_ns },
		{ "before the first operation or after the last", bound->launch_parts.ends_ns } };
	const size_t count = sizeof parts / sizeof *parts;
	size_t shown = 0;

	for (size_t i = 0; i < count; i++)
		shown += diagnose_is_share(parts[i].ns, bound->whole_ns, LIMIT_SHOWN);
	add_evidence(text, "%s %s", shown > 1 ? STEP_IDLE_LATE_NAME : shown_name(class),
		diagnose_share(diagnosis, run_bound_ns(bound, class), bound->whole_ns));
	if (shown < 2)
		return;
	for (size_t i = 0, listed = 0; i < count; i++)
		if (diagnose_is_share(parts[i].ns, bound->whole_ns, LIMIT_SHOWN))
			add_evidence(text, "%s%s %s", listed++ ? ", " : " (", parts[i].name,
				diagnose_share(diagnosis, parts[i].ns, bound->whole_ns));
	add_evidence(text, ")");
}

/* Adds which part of the unknown time is idle, if not all of it is, or none. */
static void list_unknown_parts(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	const uint64_t not_recorded_ns = bound->not_recorded_ns,
		       idle_ns = bound->ns[BOUND_UNKNOWN] - not_recorded_ns;

	if (idle_ns && not_recorded_ns)
		add_evidence(text, " (idle, cause unknown %s, busy or idle %s)",
			diagnose_share(diagnosis, idle_ns, bound->whole_ns),
			diagnose_share(diagnosis, not_recorded_ns, bound->whole_ns));
}

/* Writes the share of a class. Of two that are judged together: that of both, which the verdict
 * has, and then of each. */
static void list_share(struct diagnosis *diagnosis, const struct run_bound *bound, enum bound class,
	enum bound partner, struct finding *text)
{
	const uint64_t whole = bound->whole_ns;

	if (class == BOUND_LAUNCH || class == BOUND_HOST) {
		list_launch_share(diagnosis, bound, class, text);
		return;
	}
	if (partner == BOUND_COUNT) {
		add_evidence(text, "%s %s", shown_name(class),
			diagnose_share(diagnosis, bound->ns[class], whole));
		if (class == BOUND_UNKNOWN)
			list_unknown_parts(diagnosis, bound, text);
		return;
	}
	add_evidence(text, "%s or %s %s (%s %s, %s %s)", shown_name(class), shown_name(partner),
		diagnose_share(diagnosis, run_bound_ns(bound, class), whole), shown_name(class),
		diagnose_share(diagnosis, bound->ns[class], whole), shown_name(partner),
		diagnose_share(diagnosis, bound->ns[partner], whole));
}

/* Writes the shares of all classes with 1 % or more, the largest first. */
static void list_shares(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	bool listed[BOUND_COUNT] = { false };

	for (unsigned n = 0; n < BOUND_CLASSES; n++) {
		enum bound most = BOUND_COUNT, partner;

		for (enum bound class = BOUND_COMPUTE; class < BOUND_CLASSES; class ++)
			if (!listed[class] && bound->ns[class] &&
				run_bound_is_percent(
					run_bound_ns(bound, class), bound->whole_ns, 1) &&
				(most == BOUND_COUNT ||
					run_bound_ns(bound, class) > run_bound_ns(bound, most) ||
					(run_bound_ns(bound, class) == run_bound_ns(bound, most) &&
						bound->ns[class] > bound->ns[most])))
				most = class;
		if (most == BOUND_COUNT)
			return;
		partner = shown_partner(bound, most);
		listed[most] = true;
		if (run_bound_partner(most))
			listed[run_bound_partner(most)] = true;
		add_evidence(text, "%s", n ? ", " : "");
		list_share(diagnosis, bound, most, partner, text);
	}
}

#define CATEGORIES_LISTED 3u

/* Returns the category with the most GPU time that is not `listed`, without those of no known kind;
 * CATEGORY_OTHER: none. Of equal ones, the first of the rules. */
static unsigned next_category(const struct diagnosis *diagnosis, const bool *listed)
{
	const struct categories *categories = diagnosis->process->categories;
	const uint64_t *ns = diagnosis->facts.category_ns;
	unsigned most = CATEGORY_OTHER;

	for (unsigned i = 0; i < categories_count(categories); i++)
		if (i != CATEGORY_OTHER && !listed[i] && ns[i] &&
			(most == CATEGORY_OTHER || ns[i] > ns[most]))
			most = i;
	return most;
}

/* Adds the categories with most GPU time, as the view `categories` has them: what a run that is
 * bound by kernels is bound by. */
static void list_categories(struct diagnosis *diagnosis, struct finding *text)
{
	const uint64_t whole = diagnosis->profile->totals.gpu_sum_ns;
	bool listed[UINT8_MAX + 1] = { false };

	for (unsigned n = 0; n < CATEGORIES_LISTED; n++) {
		const size_t used = strlen(text->evidence);
		const unsigned category = next_category(diagnosis, listed);
		const uint64_t ns = diagnosis->facts.category_ns[category];
		const char *name = categories_name(diagnosis->process->categories, category);

		if (category == CATEGORY_OTHER || !run_bound_is_percent(ns, whole, 5))
			break;
		listed[category] = true;
		finding_set_text(text->evidence + used, sizeof text->evidence - used, "%s%s %s",
			n ? ", " : "; of all GPU time: ",
			diagnose_escaped(diagnosis, name, strlen(name)),
			diagnose_share(diagnosis, ns, whole));
	}
}

/* Returns the class whose time a verdict has: the kernels', if it is about them. */
static enum bound shown_class(enum bound bound)
{
	return bound == BOUND_NOTHING || bound == BOUND_BANDWIDTH ? BOUND_COMPUTE : bound;
}

#define LIMITS_KNOWN_MIN 100u /* thousandths of all GPU time: of less, a model says nothing */

/* Adds what limits the kernels, as far as a model knows it, as shares of all GPU time. */
static void say_limits(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	const uint64_t whole = diagnosis->profile->totals.gpu_sum_ns,
		       near_ns = bound->memory_limited_ns + bound->arithmetic_limited_ns,
		       below_ns = bound->modelled_ns - near_ns;

	if (!diagnose_is_share(bound->modelled_ns, whole, LIMITS_KNOWN_MIN))
		return;
	add_words(text, "; of all GPU time");
	if (near_ns)
		add_words(text, " at least %s is limited by memory, %s by arithmetic%s",
			diagnose_share(diagnosis, bound->memory_limited_ns, whole),
			diagnose_share(diagnosis, bound->arithmetic_limited_ns, whole),
			below_ns ? "," : "");
	if (below_ns)
		add_words(text, " %s is in operators that reach less than %u %% of either roof",
			diagnose_share(diagnosis, below_ns, whole), BOUND_ROOF_MIN);
	if (bound->modelled_ns < whole)
		add_words(text, ", and for %s the limit is not known",
			diagnose_share(diagnosis, whole - bound->modelled_ns, whole));
}

#define PATH_LISTED 50u /* thousandths of the critical path */

/* Adds a part of the critical path, if it is large enough to be listed. Returns that part. */
static uint64_t list_path_part(struct diagnosis *diagnosis, const struct run_bound *bound,
	const char *name, uint64_t ns, struct finding *text)
{
	if (!diagnose_is_share(ns, bound->path_ns, PATH_LISTED))
		return 0;
	add_evidence(text, "%s %s, ", name, diagnose_share(diagnosis, ns, bound->path_ns));
	return ns;
}

/* Adds what the host's part of the critical path is made of, if that is most of it. A verdict about
 * the host needs no more words. */
static void list_host_part(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	uint64_t rest_ns = bound->path_host_ns;

	if (!run_bound_host_on_path(bound) || bound->bound == BOUND_LAUNCH ||
		bound->bound == BOUND_HOST)
		return;
	add_evidence(text, " (");
	rest_ns -= list_path_part(diagnosis, bound, "data loading", bound->path_data_ns, text);
	rest_ns -= list_path_part(
		diagnosis, bound, "compilation", bound->path_compilation_ns, text);
	rest_ns -= list_path_part(
		diagnosis, bound, "CUDA calls", bound->path_of_kind[PATH_CALL], text);
	add_evidence(
		text, "other host time %s)", diagnose_share(diagnosis, rest_ns, bound->path_ns));
}

/* Adds waits of launched work, and where most of them are. */
static void list_path_waits(struct diagnosis *diagnosis, const struct run_bound *bound,
	enum path_kind kind, struct finding *text)
{
	const uint64_t kind_ns = bound->path_of_kind[kind];

	add_evidence(text, ", %s %s", path_kind_name(kind),
		diagnose_share(diagnosis, kind_ns, bound->path_ns));
	if (diagnose_is_share(bound->path_wait_node_ns,
		    bound->path_of_kind[PATH_EVENT] + bound->path_of_kind[PATH_UNEXPLAINED], 500) &&
		2 * kind_ns >
			bound->path_of_kind[PATH_EVENT] + bound->path_of_kind[PATH_UNEXPLAINED])
		add_evidence(text, " (most of it before GPU work of %s)",
			diagnose_node(diagnosis, bound->path_wait_node));
}

/* Adds how the critical path is divided between the host, the GPU, and what has 5 % of it. */
static void list_path(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	if (!bound->path_ns)
		return;
	add_evidence(text, "; critical path: host %s",
		diagnose_share(diagnosis, bound->path_host_ns, bound->path_ns));
	list_host_part(diagnosis, bound, text);
	add_evidence(text, ", GPU work %s",
		diagnose_share(diagnosis, bound->path_gpu_ns, bound->path_ns));
	for (enum path_kind kind = PATH_LAUNCH; kind < PATH_KIND_COUNT; kind++) {
		if (!diagnose_is_share(bound->path_of_kind[kind], bound->path_ns, PATH_LISTED))
			continue;
		if (kind == PATH_EVENT || kind == PATH_UNEXPLAINED)
			list_path_waits(diagnosis, bound, kind, text);
		else
			add_evidence(text, ", %s %s", path_kind_name(kind),
				diagnose_share(
					diagnosis, bound->path_of_kind[kind], bound->path_ns));
	}
	/* the path begins with the first operation on it, which may be within a step */
	if (!run_bound_is_percent(bound->path_ns, bound->whole_ns, 99))
		add_evidence(text, " of %s", diagnose_time(diagnosis, bound->path_ns));
}

static bool is_wait(enum bound bound)
{
	return bound == BOUND_EVENT || bound == BOUND_UNEXPLAINED;
}

static void explain_confidence(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	if (bound->bound == BOUND_BANDWIDTH)
		SET_TEXT(text->reason,
			"modelled: of %s of GPU time, %s are in operators whose operations and "
			"bytes are known, and %s of these are limited by memory (%u %% of the "
			"bandwidth or more)",
			diagnose_time(diagnosis, diagnosis->profile->totals.gpu_sum_ns),
			diagnose_time(diagnosis, bound->modelled_ns),
			diagnose_time(diagnosis, bound->memory_limited_ns), BOUND_ROOF_MIN);
	else if (bound->bound == BOUND_NOTHING)
		SET_TEXT(text->reason, "nothing but the kernels takes %u %% of the time",
			BOUND_SHARE_MIN);
	else if (bound->bound == BOUND_COMPUTE && bound->confidence == CONFIDENCE_MEDIUM)
		SET_TEXT(text->reason,
			"measured; what is not compute takes more than 30 %% together");
	else if (bound->bound == BOUND_UNKNOWN)
		SET_TEXT(text->reason, "the trace lacks most of what would show it");
	else if (is_wait(bound->bound))
		SET_TEXT(text->reason, "measured, but the trace may not show what was waited for");
	else if (bound->confidence == CONFIDENCE_MEDIUM)
		SET_TEXT(
			text->reason, "measured: the largest loss, but less than half of the time");
	else
		SET_TEXT(text->reason, "measured; these shares add up to the time of the GPUs");
}

/* Returns true if the run is bound by something that takes less time than the kernels do. */
static bool kernels_take_more(const struct run_bound *bound)
{
	return bound->bound != BOUND_UNKNOWN && bound->bound < BOUND_CLASSES &&
	       run_bound_ns(bound, bound->bound) < bound->ns[BOUND_COMPUTE];
}

/* Returns the length of the one wait that is nearly all of the waiting, or 0. In steps it is not
 * known: the wait may be outside of them. */
static uint64_t one_wait_ns(const struct diagnosis *diagnosis, const struct run_bound *bound)
{
	const uint64_t longest_ns = diagnosis->facts.waiting_gaps.longest_ns;

	return is_wait(bound->bound) && !bound->steps && longest_ns < bound->whole_ns &&
			       run_bound_is_percent(
				       longest_ns, run_bound_ns(bound, bound->bound), 90)
		       ? longest_ns
		       : 0;
}

/* Says what launched work waits for, and no more than the trace shows of it. */
static void say_what_is_waited_for(struct diagnosis *diagnosis, const struct run_bound *bound,
	const char *share, struct finding *text)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const bool after_event = facts->event_gaps.total_ns > facts->waiting_gaps.total_ns / 2;
	const enum gap_event event = diagnose_event(diagnosis);
	const char *call = diagnose_event_call(diagnosis);

	if (bound->bound == BOUND_EVENT) {
		SET_TEXT(text->sentence,
			"The GPU is idle for %s of the time while launched work waits for an event "
			"(%s)",
			share, call);
		return;
	}
	SET_TEXT(text->sentence,
		"The GPU is idle for %s of the time while launched work waits, and the trace does "
		"not show for what (unexplained wait)",
		share);
	if (diagnose_waits_from_the_start(diagnosis))
		add_words(text, "; most likely for work from before the trace began");
	else if (after_event && event == GAP_EVENT_POSSIBLE)
		add_words(text, "; it may be an event (%s), or earlier work of its stream", call);
	else if (after_event)
		add_words(text, "; most likely for earlier work of its stream");
	else
		add_words(text, "; it may be another process");
}

/* Says what is waited for, and of one long wait that it is one, and what is beside it. */
static void say_waiting(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	const uint64_t one_ns = one_wait_ns(diagnosis, bound),
		       rest_ns = bound->whole_ns - min_u64(bound->whole_ns, one_ns);
	const char *share = diagnose_share(
		diagnosis, run_bound_ns(bound, bound->bound), bound->whole_ns);

	say_what_is_waited_for(diagnosis, bound, share, text);
	if (one_ns && rest_ns)
		add_words(text,
			". It is one wait of %s, at %s. Kernels compute for %s of the other %s.",
			diagnose_time(diagnosis, one_ns),
			diagnose_time(diagnosis, diagnosis->facts.waiting_gaps.longest_at_ns),
			diagnose_share(diagnosis, bound->ns[BOUND_COMPUTE], rest_ns),
			diagnose_time(diagnosis, rest_ns));
	else
		add_words(text, ".");
	SET_TEXT(text->view, "queue");
}

static void advise_on_one_wait(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	if (one_wait_ns(diagnosis, bound))
		SET_TEXT(text->next, "One wait says nothing of the steady state: record longer, "
				     "after it, to see what bounds the rest.");
}

#define PATH_UNKNOWN_MAX 100u /* thousandths of the critical path */

/* Returns what a finding gains, for text. */
static const char *gain_of(struct diagnosis *diagnosis, const struct finding *finding)
{
	return diagnose_time(diagnosis, finding->has_gain ? finding->gain_ns : finding->impact_ns);
}

static const char *most_of(const struct finding *finding)
{
	return finding->has_gain || finding->upper_bound ? "up to " : "";
}

/* Says with which finding to begin: the first one of the list, if it says what it gains. */
static void advise_on_host_part(
	struct diagnosis *diagnosis, const struct finding *first, struct finding *text)
{
	if (first && !first->concerned)
		SET_TEXT(text->next, "Begin with the finding %s: %s%s.", first->rule->name,
			most_of(first), gain_of(diagnosis, first));
	else
		SET_TEXT(text->next,
			"Begin with the host's part: launch more at once (%s; %s), or do less "
			"between launches.",
			diagnose_traits(diagnosis).uses_pytorch ? diagnose_compile_advice(diagnosis)
								: "fused kernels",
			diagnose_graphs_advice(diagnosis));
}

/* Says why the first finding is not the one about what bounds the run: it gains more. */
static void advise_on_larger_gain(struct diagnosis *diagnosis, const struct finding *first,
	const struct finding *own, struct finding *text)
{
	if (first && own && first != own && !first->concerned && !*text->next)
		SET_TEXT(text->next,
			"Begin with the finding %s: %s%s. The finding %s gains up to %s.",
			first->rule->name, most_of(first), gain_of(diagnosis, first),
			own->rule->name, gain_of(diagnosis, own));
}

/* Says by how much the run gets shorter at most, without idle time of the GPU, and if the kernels
 * that compute take no time. Waits on the path whose reason is not known may get shorter with them.
 * Where much of the path is unknown, so is that. */
static void say_what_can_be_gained(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	struct finding kernels = { .whole_ns = bound->whole_ns };
	uint64_t most_ns;

	add_words(text, " Removing all idle time of the GPU saves at most %s of the run",
		diagnose_share(diagnosis, bound->idle_ns, bound->whole_ns));
	finding_set_gain(diagnosis, &kernels, 0, path_node_computes, NULL);
	if (kernels.has_gain && !diagnose_is_share(bound->path_of_kind[PATH_UNKNOWN],
					bound->path_ns, PATH_UNKNOWN_MAX)) {
		most_ns = min_u64(bound->path_ns - bound->path_host_ns,
			kernels.gain_ns + bound->path_of_kind[PATH_EVENT] +
				bound->path_of_kind[PATH_UNEXPLAINED] +
				bound->path_of_kind[PATH_UNKNOWN]);
		if (diagnose_is_share(most_ns, bound->time_ns, 1))
			add_words(text, ", faster kernels at most %s",
				diagnose_share(diagnosis, most_ns, bound->time_ns));
		else
			add_words(text, ", faster kernels less than 0.1 %%");
	}
	add_words(text, ".");
}

/* Kernels run for most of the time, but the host runs all the same, and takes longer. */
static void say_host_on_path(struct diagnosis *diagnosis, const struct run_bound *bound,
	const struct finding *first, struct finding *text)
{
	SET_TEXT(text->sentence,
		"The run is limited by the host: it has %s of the critical path, while kernels "
		"compute for %s of the time.",
		diagnose_share(diagnosis, bound->path_host_ns, bound->path_ns),
		diagnose_share(diagnosis, bound->ns[BOUND_COMPUTE], bound->whole_ns));
	say_what_can_be_gained(diagnosis, bound, text);
	SET_TEXT(text->view, "critical-path");
	advise_on_host_part(diagnosis, first, text);
}

/* Says why communication or copies can bound a run that has more of the host on its critical path:
 * the host works meanwhile. `own`: the finding about what bounds the run. */
static void say_host_works_meanwhile(struct diagnosis *diagnosis, const struct run_bound *bound,
	const struct finding *own, struct finding *text)
{
	const bool communicates = bound->bound == BOUND_COMMUNICATION;

	if (!run_bound_host_on_path(bound) || !(communicates || bound->bound == BOUND_COPIES))
		return;
	add_words(text, " Meanwhile the host works on: it has %s of the critical path",
		diagnose_share(diagnosis, bound->path_host_ns, bound->path_ns));
	if (own && own->has_gain && own->gain_ns < own->impact_ns)
		add_words(text, ", so removing the %s alone would save at most %s",
			communicates ? "communication" : "copies",
			diagnose_share(diagnosis, own->gain_ns, bound->whole_ns));
	add_words(text, ".");
}

/* First calls do not recur, so it is also said what takes most of the rest. */
static void say_what_bounds_the_rest(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	const uint64_t rest_ns = bound->whole_ns - bound->ns[BOUND_FIRST];
	enum bound most = BOUND_COMPUTE;

	for (enum bound class = BOUND_COMPUTE; class < BOUND_CLASSES; class ++)
		if (class != BOUND_FIRST && run_bound_ns(bound, class) > run_bound_ns(bound, most))
			most = class;
	if (!rest_ns)
		return;
	add_words(text, ". They do not recur. The largest part of the other %s is %s (%s)",
		diagnose_time(diagnosis, rest_ns),
		most == BOUND_LAUNCH || most == BOUND_HOST ? STEP_IDLE_LATE_NAME : shown_name(most),
		diagnose_share(diagnosis, run_bound_ns(bound, most), rest_ns));
}

/* In place of that of BOUND_FIRST, where there are steps to compare. */
#define SLOW_LAUNCHES_SENTENCE                                                          \
	"The run is bound by single slow launches: for %s of the time the GPU is idle " \
	"while the host is in launches that take much longer than the others"

static void say_bound(struct diagnosis *diagnosis, const struct run_bound *bound,
	const struct finding *own, struct finding *text)
{
	const enum bound shown = shown_class(bound->bound);

	/* what the host did is known of all gaps only, not of those in steps */
	const char *mpi = bound->bound == BOUND_HOST && !bound->steps
				  ? host_activity_mpi_share(diagnosis)
				  : NULL;

	finding_set_text(text->sentence, sizeof text->sentence,
		bound->bound == BOUND_FIRST && bound->steps >= STEPS_COMPARED_MIN
			? SLOW_LAUNCHES_SENTENCE
			: sentences[bound->bound],
		diagnose_share(diagnosis, run_bound_ns(bound, shown), bound->whole_ns));
	if (bound->bound == BOUND_HOST)
		add_words(text, ", most of it in %s of %s or more (the longest %s)",
			diagnose_plural(diagnosis, bound->long_gaps, "interval"),
			diagnose_time(diagnosis, LIMIT_LONG_GAP_NS),
			diagnose_time(diagnosis, bound->longest_gap_ns));
	if (shown == BOUND_COMPUTE)
		say_limits(diagnosis, bound, text);
	if (mpi)
		add_words(text, ", in which the host is in MPI for %s of the time", mpi);
	if (bound->bound == BOUND_FIRST)
		say_what_bounds_the_rest(diagnosis, bound, text);
	else if (kernels_take_more(bound))
		add_words(text, ". This is the largest loss; the kernels compute for %s",
			diagnose_share(diagnosis, bound->ns[BOUND_COMPUTE], bound->whole_ns));
	add_words(text, ".%s",
		(bound->bound == BOUND_LAUNCH || bound->bound == BOUND_HOST) &&
				diagnose_traits(diagnosis).has_python_stacks
			? " Python stacks were recorded, which slows the host: measure once "
			  "without them."
			: "");
	say_host_works_meanwhile(diagnosis, bound, own, text);
}

static void say_sentence(struct diagnosis *diagnosis, const struct run_bound *bound,
	const struct finding *first, const struct finding *own, struct finding *text)
{
	if (is_wait(bound->bound))
		say_waiting(diagnosis, bound, text);
	else if ((bound->bound == BOUND_COMPUTE || bound->bound == BOUND_BANDWIDTH) &&
		 run_bound_host_on_path(bound))
		say_host_on_path(diagnosis, bound, first, text);
	else
		say_bound(diagnosis, bound, own, text);
}

#define OTHERS_LISTED 50u /* thousandths of the GPU time in the steps */

/* Adds how much of the GPU time in the steps is of work that was launched in no such step. */
static void list_work_of_others(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	if (!diagnose_is_share(bound->gpu_of_others_ns, bound->gpu_ns, OTHERS_LISTED))
		return;
	add_evidence(text, "; of %s of GPU time in %s, %s (%s) were launched earlier",
		diagnose_time(diagnosis, bound->gpu_ns), run_bound_time_name(bound),
		diagnose_time(diagnosis, bound->gpu_of_others_ns),
		diagnose_share(diagnosis, bound->gpu_of_others_ns, bound->gpu_ns));
}

/* Adds for how long the first operation waited after its launch, if that is much of the run. */
static void list_first_wait(struct diagnosis *diagnosis, struct finding *text)
{
	const struct first_wait_fact *wait = &diagnosis->facts.first_wait;

	if (diagnose_is_share(wait->ns, diagnosis->facts.run_ns, LIMIT_WORTH))
		add_evidence(text,
			"; before that, the first operation waits for %s after its launch, most "
			"likely for work from before the trace began",
			diagnose_time(diagnosis, wait->ns));
}

#define BLOCKED_MOST 500u /* thousandths of the time */

/* Says what an unknown verdict excludes, and how to record what the trace lacks. */
static void advise_on_unknown(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	const uint64_t blocked_ns = blocking_launcher_ns(diagnosis, bound->steps > 0);
	const uint64_t graphs = diagnosis->profile->counts.graph_launches;

	if (diagnose_is_share(blocked_ns, bound->time_ns, BLOCKED_MOST))
		add_words(text,
			" For %s of the time it is not the host: then the thread that launches "
			"waits for "
			"the GPU in CUDA calls.",
			diagnose_share(diagnosis, blocked_ns, bound->time_ns));
	if (graphs)
		SET_TEXT(text->next,
			"The trace has %s of CUDA graphs, and not all of their nodes. Record them: "
			"LD_PRELOAD=libpperf.so, or nsys profile --cuda-graph-trace=node; or "
			"record some steps without CUDA graphs.",
			diagnose_plural(diagnosis, graphs, "launch"));
	else
		SET_TEXT(text->next,
			"Record the CUDA calls with the GPU work: with launches, the cause of idle "
			"time is known (torch.profiler: ProfilerActivity.CPU and CUDA; nsys: "
			"--trace=cuda).");
}

void run_bound_explain(struct diagnosis *diagnosis, const struct run_bound *bound,
	const struct finding *first, const struct finding *own, struct finding *text)
{
	const enum bound shown = shown_class(bound->bound);

	SET_TEXT(text->view, "%s", views[bound->bound]);
	if (bound->bound == BOUND_UNJUDGED) {
		const uint64_t captured = diagnosis->profile->counts.captured;

		SET_TEXT(text->sentence,
			"There is too little GPU work in the trace to say what "
			"bounds the run%s%s%s.",
			captured ? ": " : "",
			captured ? diagnose_plural(diagnosis, captured, "call") : "",
			captured ? " were captured in a CUDA graph, and ran nothing yet" : "");
		SET_TEXT(text->reason, "%s; at least %u are needed",
			diagnose_plural(diagnosis, bound->operations, "GPU operation"),
			BOUND_OPERATIONS_MIN);
		return;
	}
	say_sentence(diagnosis, bound, first, own, text);
	if (bound->steps)
		SET_TEXT(text->evidence, "%s in %s: ", diagnose_time(diagnosis, bound->whole_ns),
			bound->steps == 1
				? "1 step"
				: diagnose_plural(diagnosis, bound->steps, "steady-state step"));
	else if (run_bound_is_percent(bound->whole_ns, diagnosis->facts.run_ns, 90))
		SET_TEXT(text->evidence, "%s from the first GPU operation to the last: ",
			diagnose_time(diagnosis, bound->whole_ns));
	else
		SET_TEXT(text->evidence,
			"%s from the first GPU operation to the last, of a run of %s: ",
			diagnose_time(diagnosis, bound->whole_ns),
			diagnose_time(diagnosis, diagnosis->facts.run_ns));
	list_shares(diagnosis, bound, text);
	if (shown == BOUND_COMPUTE)
		list_categories(diagnosis, text);
	list_work_of_others(diagnosis, bound, text);
	list_path(diagnosis, bound, text);
	diagnose_list_startup(diagnosis, text);
	list_first_wait(diagnosis, text);
	if ((shown == BOUND_COMPUTE) && !*text->next)
		bound_kernels_advise(diagnosis, text);
	else if (is_wait(shown))
		advise_on_one_wait(diagnosis, bound, text);
	else if (bound->bound == BOUND_UNKNOWN)
		advise_on_unknown(diagnosis, bound, text);
	advise_on_larger_gain(diagnosis, first, own, text);
	explain_confidence(diagnosis, bound, text);
}
