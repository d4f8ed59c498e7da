/* SPDX-License-Identifier: MIT
 *
 * The rule about copies beside which the GPU runs no kernel. Copies from and to pageable memory
 * have a rule of their own (call_rules.c).
 */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/table/computed_row.h"
#include <stdlib.h>

/* Sums over the rows of the view `overlap` for copies. */
struct copies {
	uint64_t busy_ns, exposed_ns, operations, bytes;
	uint64_t on_device_ns; /* exposed, at nodes most of whose copies are within the GPU */
	uint64_t *node_ns;     /* by node: exposed */
	size_t room;
};

/* Returns true if half of the time of a node's copies or more is of copies within the GPU. */
static bool is_on_device(const struct diagnosis *diagnosis, const struct row *row)
{
	const struct occurrences *copies = &diagnosis->facts.device_copies;

	return row->node < copies->room &&
	       2 * copies->of_node[row->node].total_ns >= computed_row_number(row, "gpu_total_ns");
}

static void add_copy_row(
	const struct diagnosis *diagnosis, struct copies *sums, const struct row *row)
{
	const uint64_t exposed_ns = computed_row_number(row, "exposed_ns");

	if (!computed_row_is(row, "traffic", "copies"))
		return;
	if (computed_row_is(row, "kind", "copies")) {
		sums->busy_ns += computed_row_number(row, "busy_ns");
		sums->exposed_ns += exposed_ns;
		sums->operations += computed_row_number(row, "calls");
		sums->bytes += computed_row_number(row, "bytes");
		return;
	}
	ARRAY_GROW(sums->node_ns, sums->room, (size_t)row->node + 1);
	sums->node_ns[row->node] += exposed_ns;
	sums->on_device_ns += is_on_device(diagnosis, row) ? exposed_ns : 0;
}

static struct copies copies_of(struct diagnosis *diagnosis)
{
	struct copies sums = { .node_ns = NULL };
	const struct rows *rows = diagnose_overlap_rows(diagnosis);

	for (size_t i = 0; i < rows->count; i++)
		add_copy_row(diagnosis, &sums, &rows->rows[i]);
	return sums;
}

/* Returns true if most of the time of copies is of pageable memory, which pageable-copies reports.
 */
static bool are_pageable(const struct diagnosis *diagnosis, const struct copies *sums)
{
	const struct occurrences *pageable = &diagnosis->facts.pageable;

	return pageable->count >= LIMIT_CALLS_FEW && 2 * pageable->total_ns >= sums->busy_ns &&
	       diagnose_is_share(pageable->total_ns, diagnosis->facts.span_ns, LIMIT_LITTLE);
}

/* Thousandths of the exposed time: what has less gets no advice. */
#define COPIES_ADVISED 250u

static void advise_on_copies(
	struct diagnosis *diagnosis, struct finding *finding, const struct copies *sums)
{
	const bool pytorch = diagnose_traits(diagnosis).uses_pytorch,
		   on_device = diagnose_is_share(
			   sums->on_device_ns, sums->exposed_ns, COPIES_ADVISED),
		   others = diagnose_is_share(
			   sums->exposed_ns - sums->on_device_ns, sums->exposed_ns, COPIES_ADVISED);

	SET_TEXT(finding->next, "%s%s%s%s",
		!on_device ? ""
		: pytorch  ? "Copy less within the GPU: keep tensors in the layout that the next "
			     "operator needs (each .contiguous(), .clone() or torch.cat copies), "
			     "write into the result (out=), and join small copies "
			     "(torch._foreach_copy_)."
			  : "Copy less within the GPU: let kernels write where the data is needed, "
			    "and join small copies.",
		on_device && others ? " " : "",
		!others   ? ""
		: pytorch ? "Overlap the copies from and to the host with kernels: pinned memory, "
			    "non_blocking=True, a stream of their own, one batch ahead."
			  : "Overlap the copies from and to the host with kernels: pinned memory, "
			    "asynchronous copies, a stream of their own.",
		others && !on_device ? " Or copy less: smaller types, data that stays on the GPU."
				     : "");
}

static bool is_copy(const struct path_node *work, void *context)
{
	(void)context;
	return work->kind == ACTIVITY_COPY;
}

static void report_copies(
	struct diagnosis *diagnosis, struct finding *finding, const struct copies *sums)
{
	finding_set_found(finding, CONFIDENCE_HIGH);
	SET_TEXT(finding->reason, "measured");
	SET_TEXT(finding->sentence, "The GPU copies while no kernel runs.");
	finding_set_class_place(diagnosis, finding, BOUND_COPIES, sums->node_ns, sums->room);
	finding_set_gain(diagnosis, finding, 0, is_copy, NULL);
	SET_TEXT(finding->evidence,
		"of %s of copies in %s, %s on average, %s is exposed (the whole trace); %s of that "
		"at call paths that copy mostly within the GPU",
		diagnose_time(diagnosis, sums->busy_ns),
		diagnose_plural(diagnosis, sums->operations, "operation"),
		diagnose_bytes(diagnosis, sums->bytes / (sums->operations ? sums->operations : 1)),
		diagnose_share(diagnosis, sums->exposed_ns, sums->busy_ns),
		diagnose_share(diagnosis, sums->on_device_ns, sums->exposed_ns));
	advise_on_copies(diagnosis, finding, sums);
	SET_TEXT(finding->view, "overlap");
	finding->count = sums->operations;
}

void diagnose_exposed_copies(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct copies sums = copies_of(diagnosis);

	if (are_pageable(diagnosis, &sums))
		SET_TEXT(finding->same_idle_as, "pageable-copies");
	else if (finding_set_class(
			 diagnosis, finding, BOUND_COPIES, sums.exposed_ns, LIMIT_TOGETHER))
		report_copies(diagnosis, finding, &sums);
	free(sums.node_ns);
}
