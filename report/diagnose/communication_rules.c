/* SPDX-License-Identifier: MIT
 *
 * Rules about communication between GPUs.
 */
#include "report/analysis/collective_rates.h"
#include "report/analysis/ranks/rank_set.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/text_builder.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/table/computed_row.h"
#include <stdlib.h>

/* Sums over the rows of the view `overlap` for communication. */
struct communication {
	uint64_t busy_ns, exposed_ns, operations;
	uint64_t *node_ns; /* by node: exposed */
	size_t room;
	/* Messages of one size, or of sizes that are not recorded, at one node: how many of them
	 * there are, and those with the most exposed time. */
	size_t sizes;
	uint64_t largest_bytes; /* of one message */
	struct {
		uint64_t calls, bytes, busy_ns, exposed_ns, min_ns, max_ns, rate, bus_rate;
	} top_size;
};

/* Adds messages at one node: those of one size, or the only one. */
static void add_messages(struct communication *sums, const struct row *row)
{
	const uint64_t calls = computed_row_number(row, "calls"),
		       bytes = calls ? computed_row_number(row, "bytes") / calls : 0;

	sums->sizes++;
	sums->largest_bytes = max_u64(sums->largest_bytes, bytes);
	if (computed_row_number(row, "exposed_ns") <= sums->top_size.exposed_ns)
		return;
	sums->top_size.calls = calls;
	sums->top_size.bytes = bytes;
	sums->top_size.busy_ns = computed_row_number(row, "busy_ns");
	sums->top_size.exposed_ns = computed_row_number(row, "exposed_ns");
	sums->top_size.min_ns = computed_row_number(row, "min_ns");
	sums->top_size.max_ns = computed_row_number(row, "max_ns");
	sums->top_size.rate = computed_row_number(row, "message_bytes_per_s");
	sums->top_size.bus_rate = computed_row_number(row, "bus_bytes_per_s");
}

static void add_communication_row(struct communication *sums, const struct row *row)
{
	const uint64_t exposed_ns = computed_row_number(row, "exposed_ns");

	if (computed_row_is(row, "kind", "size") ||
		(computed_row_is(row, "kind", "place") &&
			computed_row_is(row, "traffic", "communication") &&
			computed_row_number(row, "calls") == 1))
		add_messages(sums, row);
	if (!computed_row_is(row, "traffic", "communication"))
		return;
	if (computed_row_is(row, "kind", "communication")) {
		sums->busy_ns += computed_row_number(row, "busy_ns");
		sums->exposed_ns += exposed_ns;
		sums->operations += computed_row_number(row, "calls");
	} else {
		ARRAY_GROW(sums->node_ns, sums->room, (size_t)row->node + 1);
		sums->node_ns[row->node] += exposed_ns;
	}
}

static struct communication communication_of(struct diagnosis *diagnosis)
{
	struct communication sums = { .node_ns = NULL };
	const struct rows *rows = diagnose_overlap_rows(diagnosis);

	for (size_t i = 0; i < rows->count; i++)
		add_communication_row(&sums, &rows->rows[i]);
	return sums;
}

/* A collective that takes this many times as long as the fastest equal one waits nearly all of its
 * time. */
#define NEARLY_ALL 10u

/* Appends to the evidence. */
#define ADD_EVIDENCE(finding, ...)                                          \
	finding_set_text((finding)->evidence + strlen((finding)->evidence), \
		sizeof(finding)->evidence - strlen((finding)->evidence), __VA_ARGS__)

/* Adds the collective that is slowest by comparison with an equal one. */
static void add_slowest(
	struct diagnosis *diagnosis, struct finding *finding, const struct collective_rates *rates)
{
	if (rates->slowest_ns < 2 * rates->fastest_ns || !rates->slowest_ns)
		return;
	ADD_EVIDENCE(finding,
		"; a message of %s takes %s, the fastest of that size %s: the rest %s",
		diagnose_bytes(diagnosis, rates->slowest_bytes),
		diagnose_time(diagnosis, rates->slowest_ns),
		diagnose_time(diagnosis, rates->fastest_ns),
		rates->slowest_ns >= NEARLY_ALL * rates->fastest_ns
			? "is a wait for other ranks"
			: "is a wait for other ranks, or for a network that others use");
}

/* Says what the time of a call consists of that does not grow with the size of the message. */
static void add_fixed_part(
	struct diagnosis *diagnosis, struct finding *finding, const struct collective_line *line)
{
	const char *latency = diagnose_time(diagnosis, line->latency_max_ns);

	ADD_EVIDENCE(finding, "%s of each call does not depend on the size",
		diagnose_time(diagnosis, line->fixed_each_ns));
	if (line->limit == LINE_WAIT)
		ADD_EVIDENCE(finding,
			", which is longer than latency (assumed: at most %s): most of it is a "
			"wait for other ranks, or other kernels on the GPU",
			latency);
	else if (line->limit == LINE_LATENCY)
		ADD_EVIDENCE(finding,
			", which is latency (assumed: at most %s), or a wait that is no longer",
			latency);
}

/* Adds how the time of the largest kind of collective depends on the size of its messages. */
static void add_line(
	struct diagnosis *diagnosis, struct finding *finding, const struct collective_line *line)
{
	char ranks[64] = "";

	if (line->limit == LINE_NONE)
		return;
	if (line->ranks)
		SET_TEXT(ranks, " of %s", diagnose_plural(diagnosis, line->ranks, "rank"));
	ADD_EVIDENCE(finding, "; %s%s, %s of %s (%s to %s): ",
		line->operation ? sized_operation_name(line->operation) : "one kernel", ranks,
		diagnose_plural(diagnosis, line->count, "call"),
		diagnose_plural(diagnosis, line->sizes, "size"),
		diagnose_bytes(diagnosis, line->min_bytes),
		diagnose_bytes(diagnosis, line->max_bytes));
	if (line->limit == LINE_VARIES)
		ADD_EVIDENCE(finding,
			"their times do not depend on the size, but on waits for other "
			"ranks, or on a network that others use");
	else if (line->limit == LINE_UNSURE)
		ADD_EVIDENCE(finding,
			"a line through only two sizes, which waits for other ranks may bend: %s "
			"of each call does not depend on the size, and the rest is transfer at %s",
			diagnose_time(diagnosis, line->fixed_each_ns),
			diagnose_rate(diagnosis, (uint64_t)line->bytes_per_s, 1000000000));
	else if (line->limit == LINE_TRANSFER)
		ADD_EVIDENCE(finding, "most of the time is transfer, at %s",
			diagnose_rate(diagnosis, (uint64_t)line->bytes_per_s, 1000000000));
	else
		add_fixed_part(diagnosis, finding, line);
}

/* Adds what the times of the collectives whose size is known consist of. */
static void add_rates(
	struct diagnosis *diagnosis, struct finding *finding, const struct collective_rates *rates)
{
	if (!rates->ns)
		return;
	add_slowest(diagnosis, finding, rates);
	add_line(diagnosis, finding, &rates->line);
}

/* Returns true if the largest messages have most of the exposed time and are exposed nearly
 * throughout, while smaller ones are hidden in part: what is sent last has nothing beside it. */
static bool exposes_largest(const struct communication *sums)
{
	return sums->sizes > 1 && sums->top_size.bytes &&
	       sums->top_size.bytes == sums->largest_bytes &&
	       diagnose_is_share(sums->top_size.exposed_ns, sums->top_size.busy_ns, 900) &&
	       sums->busy_ns - sums->exposed_ns >
		       sums->top_size.busy_ns - sums->top_size.exposed_ns;
}

/* Returns true if most of the largest messages begin when another collective ends: then the stream
 * of communication is saturated, and buckets of other sizes end no sooner. */
static bool is_saturated(const struct collective_rates *rates)
{
	return 2 * rates->largest_following > rates->largest;
}

/* Sets the advice where the largest messages are exposed although the GPU communicates without a
 * pause: only the collectives themselves can take less time. */
static void advise_on_saturation(struct finding *finding, const struct collective_line *line)
{
	SET_TEXT(finding->next,
		"Compare the ranks first (pperf-report ranks with the traces of all ranks): a slow "
		"rank shows as communication on the others. The largest messages begin when the "
		"collective before them ends, so buckets of other sizes, or earlier ones, end no "
		"sooner. %s: check the link that NCCL uses (NCCL_DEBUG=INFO)%s.",
		line->limit == LINE_TRANSFER ? "Make the transfer shorter"
					     : "Reduce what each call costs whatever its size",
		line->limit == LINE_TRANSFER
			? ", and send fewer bytes (a smaller type, less often)"
			: ", make fewer calls (larger buckets, no_sync() while gradients are "
			  "accumulated), and use fewer ranks, or ranks that are closer");
}

/* Sets the advice by what most of the communication consists of, where that is known. */
static void advise_on_communication(struct finding *finding, const struct communication *sums,
	const struct collective_rates *rates)
{
	const struct collective_line *line = &rates->line;
	const bool most = diagnose_is_share(line->ns, sums->busy_ns, 500);

	if (exposes_largest(sums) && is_saturated(rates))
		advise_on_saturation(finding, line);
	else if (exposes_largest(sums))
		SET_TEXT(finding->next,
			"Compare the ranks first (pperf-report ranks with the traces of all "
			"ranks): a slow rank shows as communication on the others. The largest "
			"messages have no work left beside them, so larger buckets do not help: "
			"make the last bucket smaller (of PyTorch's DistributedDataParallel: "
			"bucket_cap_mb), or send it earlier.");
	else if (most && line->limit == LINE_LATENCY)
		SET_TEXT(finding->next,
			"Send fewer, larger messages (larger buckets, flat parameters), because "
			"each has a fixed cost. Then overlap them: prefetch, another order of "
			"layers, communication in its own stream.");
	else if (most && line->limit == LINE_TRANSFER)
		SET_TEXT(finding->next,
			"Send fewer bytes (a smaller type, less often), and check which links NCCL "
			"uses (NCCL_DEBUG=INFO). Then overlap it: larger buckets, prefetch, "
			"another order of layers, communication in its own stream.");
	else
		SET_TEXT(finding->next,
			"Compare the ranks first (pperf-report ranks with the traces of all "
			"ranks): a slow rank shows as communication on the others. Then overlap "
			"it: larger buckets, prefetch, another order of layers, communication in "
			"its own stream.");
}

/* Adds which messages are exposed most, if the view shows several sizes. */
static void add_top_size(
	struct diagnosis *diagnosis, struct finding *finding, const struct communication *sums)
{
	const uint64_t calls = sums->top_size.calls, bytes = sums->top_size.bytes;

	if (sums->sizes < 2 || !sums->top_size.exposed_ns)
		return;
	ADD_EVIDENCE(finding, "; most exposed: %s", diagnose_plural(diagnosis, calls, "message"));
	if (bytes)
		ADD_EVIDENCE(finding, " of %s%s", diagnose_bytes(diagnosis, bytes),
			calls > 1 ? " each" : "");
	else
		ADD_EVIDENCE(finding, " (size not recorded)");
	if (calls > 1)
		ADD_EVIDENCE(finding, ": %s to %s", diagnose_time(diagnosis, sums->top_size.min_ns),
			diagnose_time(diagnosis, sums->top_size.max_ns));
	else
		ADD_EVIDENCE(finding, ": %s", diagnose_time(diagnosis, sums->top_size.busy_ns));
	if (bytes)
		ADD_EVIDENCE(finding, " (algorithm bandwidth %s%s%s)",
			diagnose_rate(diagnosis, sums->top_size.rate, 1000000000),
			sums->top_size.bus_rate ? ", bus bandwidth " : "",
			sums->top_size.bus_rate
				? diagnose_rate(diagnosis, sums->top_size.bus_rate, 1000000000)
				: "");
	ADD_EVIDENCE(finding, ", %s exposed",
		diagnose_share(diagnosis, sums->top_size.exposed_ns, sums->top_size.busy_ns));
}

static bool communicates(const struct path_node *work, void *context)
{
	(void)context;
	return work->communicates;
}

static void report_exposed(
	struct diagnosis *diagnosis, struct finding *finding, const struct communication *sums)
{
	const struct collective_rates rates = collective_rates_of(diagnosis->collectives);

	finding_set_found(
		finding, diagnose_hides_work(diagnosis) ? CONFIDENCE_LOW : CONFIDENCE_HIGH);
	SET_TEXT(finding->reason, "%s",
		diagnose_hides_work(diagnosis)
			? "for much of the time the trace does not show what the GPU did, and "
			  "communication may have been overlapped there"
			: "measured; only the traces of the other ranks show how much of it is "
			  "waiting for them");
	SET_TEXT(finding->sentence, "The GPU communicates while nothing is computed.");
	finding_set_class_place(diagnosis, finding, BOUND_COMMUNICATION, sums->node_ns, sums->room);
	finding_set_gain(diagnosis, finding, 0, communicates, NULL);
	SET_TEXT(finding->evidence, "of %s of communication in %s, %s is exposed (the whole trace)",
		diagnose_time(diagnosis, sums->busy_ns),
		diagnose_plural(diagnosis, sums->operations, "operation"),
		diagnose_share(diagnosis, sums->exposed_ns, sums->busy_ns));
	add_top_size(diagnosis, finding, sums);
	add_rates(diagnosis, finding, &rates);
	advise_on_communication(finding, sums, &rates);
	SET_TEXT(finding->view, "overlap");
	finding->count = sums->operations;
}

void diagnose_exposed_communication(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct communication sums = communication_of(diagnosis);

	if (finding_set_class(
		    diagnosis, finding, BOUND_COMMUNICATION, sums.exposed_ns, LIMIT_WORTH))
		report_exposed(diagnosis, finding, &sums);
	free(sums.node_ns);
}

/* Returns true if traces of several ranks were read. */
static bool has_other_ranks(const struct diagnosis *diagnosis)
{
	const struct processes *processes = diagnosis->processes;

	for (size_t i = 0; i < processes->count; i++)
		if (processes->all[i].rank >= 0 && diagnosis->process->rank >= 0 &&
			processes->all[i].rank != diagnosis->process->rank)
			return true;
	return false;
}

static const struct rank_process *rank_of_process(
	const struct diagnosis *diagnosis, const struct ranks *ranks)
{
	for (size_t i = 0; i < ranks->count; i++)
		if (ranks->all[i].number == diagnosis->process->rank)
			return &ranks->all[i];
	return NULL;
}

static void report_waits(struct diagnosis *diagnosis, struct finding *finding,
	const struct ranks *ranks, const struct rank_process *own)
{
	const struct straggler *late = ranks->straggler_count ? &ranks->stragglers[0] : NULL;

	finding_set_found(finding, late ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM);
	SET_TEXT(finding->reason,
		"the ranks' clocks are aligned by the ends of collectives; %s rank is last more "
		"often than by chance",
		late ? "one" : "no");
	SET_TEXT(finding->sentence, "Collectives of rank %lld wait for other ranks.",
		(long long)own->number);
	SET_TEXT(finding->evidence, "%s waiting, %s transferring, in %s",
		diagnose_time(diagnosis, own->sums.wait_ns),
		diagnose_time(diagnosis, own->sums.transfer_ns),
		diagnose_plural(diagnosis, own->sums.matched, "collective"));
	if (late)
		SET_TEXT(finding->next,
			"Look at rank %lld, which is last most often: pperf-report ranks shows "
			"where it spends more time than the others.",
			(long long)ranks->all[late->rank].number);
	else
		SET_TEXT(finding->next, "The work of the ranks varies from step to step: balance "
					"it (sequence lengths, tables, experts).");
	SET_TEXT(finding->view, "ranks");
	finding_set_impact(finding, 0, own->sums.matched, own->sums.wait_ns);
}

void diagnose_collective_waits(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct rank_process *own;
	struct ranks ranks;

	if (!diagnosis->facts.communications)
		return;
	if (!has_other_ranks(diagnosis)) {
		finding_set_unchecked(finding, "the traces of other ranks were not given");
		return;
	}
	if (!ranks_read(&ranks, diagnosis->options))
		finding_set_unchecked(finding, ranks.problem.text);
	else if ((own = rank_of_process(diagnosis, &ranks)) &&
		 diagnose_is_share(own->sums.wait_ns, diagnosis->facts.span_ns, LIMIT_WORTH))
		report_waits(diagnosis, finding, &ranks, own);
	ranks_free(&ranks);
}
