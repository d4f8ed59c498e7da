/* SPDX-License-Identifier: MIT
 *
 * Says what to do about calls in which the host waits for the GPU, by the operators around them.
 */
#include "report/diagnose/diagnosis_internal.h"
#include <ctype.h>
#include <string.h>

/* Returns true if an operator reads one value of a tensor, or a count that depends on values. */
static bool is_read_of_value(struct string_view name)
{
	return memmem(name.bytes, name.length, "_local_scalar_dense", 19) ||
	       memmem(name.bytes, name.length, "::item", 6) ||
	       memmem(name.bytes, name.length, "nonzero", 7);
}

bool diagnose_reads_value(const struct diagnosis *diagnosis, uint32_t node)
{
	const struct tree *tree = diagnosis->profile->tree;

	for (; node; node = tree->nodes[node].parent)
		if (is_read_of_value(
			    string_table_get(diagnosis->process->texts, tree->nodes[node].name)))
			return true;
	return false;
}

static uint64_t occurrences_at(const struct occurrences *occurrences, uint32_t node)
{
	return node < occurrences->room ? occurrences->of_node[node].total_ns : 0;
}

/* Returns true if the innermost operators around `node` index a tensor. */
static bool is_indexing(const struct diagnosis *diagnosis, uint32_t node)
{
	const struct tree *tree = diagnosis->profile->tree;

	for (; node && tree->nodes[node].kind == NODE_OP; node = tree->nodes[node].parent) {
		const struct string_view name = string_table_get(
			diagnosis->process->texts, tree->nodes[node].name);

		if (memmem(name.bytes, name.length, "::index", 7) ||
			memmem(name.bytes, name.length, "::_index", 8))
			return true;
	}
	return false;
}

/* Sets the advice for waits that copies from or to pageable memory cause. Returns false if there is
 * no such copy at `node`. */
static bool advise_on_pageable_copies(
	struct diagnosis *diagnosis, uint32_t node, char *text, size_t room)
{
	const uint64_t all_ns = occurrences_at(&diagnosis->facts.pageable, node),
		       to_host_ns = occurrences_at(&diagnosis->facts.pageable_to_host, node);
	const bool pytorch = diagnose_traits(diagnosis).uses_pytorch;

	if (!all_ns)
		return false;
	if (to_host_ns > all_ns / 10 && to_host_ns < all_ns - all_ns / 10)
		finding_set_text(text, room,
			"The host waits for copies between pageable memory and the GPU, in both "
			"directions: pin the memory, and copy asynchronously%s.",
			pytorch ? " (pin_memory(), non_blocking=True)" : "");
	else if (to_host_ns > all_ns / 2)
		finding_set_text(text, room,
			"The host waits for copies from the GPU to pageable memory: copy to "
			"pinned memory%s, and wait where the values are needed; or copy less "
			"often.",
			pytorch ? " (pin_memory=True, non_blocking=True)"
				: " with an asynchronous copy");
	else if (is_indexing(diagnosis, node))
		finding_set_text(text, room,
			"The index is in pageable memory of the CPU, and is copied "
			"to the GPU each time, while the host waits: keep the "
			"index on the GPU, or pin it and copy it with "
			"non_blocking=True.");
	else
		finding_set_text(text, room,
			"The host waits for copies from pageable memory to the GPU: keep the data "
			"on the GPU, or pin it%s.",
			pytorch ? " (pin_memory()) and copy it with non_blocking=True"
				: " and copy asynchronously");
	return true;
}

static void advise_on_others(struct diagnosis *diagnosis, uint32_t node, char *text, size_t room)
{
	if (advise_on_pageable_copies(diagnosis, node, text, room))
		return;
	finding_set_text(text, room,
		"Remove the wait, or move it to where the GPU has work queued: %s.",
		diagnose_traits(diagnosis).uses_pytorch
			? "no .item(), .cpu(), print of a tensor or torch.cuda.synchronize inside "
			  "a step; events instead of device-wide waits; non_blocking copies from "
			  "pinned memory"
			: "events instead of device-wide waits; asynchronous copies from pinned "
			  "memory");
}

#define READ_ADVICE                                                                                \
	"The host reads values of tensors (.item(), if tensor, nonzero, boolean indexing), which " \
	"pinned memory does not help: keep the values on the GPU, gather several and read them "   \
	"in one copy, or read them every N steps."

void diagnose_advise_on_waits(struct diagnosis *diagnosis, struct finding *finding)
{
	if (diagnose_reads_value(diagnosis, finding->node))
		SET_TEXT(finding->next, READ_ADVICE);
	else
		advise_on_others(diagnosis, finding->node, finding->next, sizeof finding->next);
}

/* Percent of the blocked time: what has less gets no advice of its own. */
#define ADVISED_MIN 10u

void diagnose_advise_on_blocked(struct diagnosis *diagnosis, const struct occurrences *reads,
	const struct occurrences *others, struct finding *finding)
{
	const uint64_t all_ns = reads->total_ns + others->total_ns;
	const bool has_reads = run_bound_is_percent(reads->total_ns, all_ns, ADVISED_MIN),
		   has_others = run_bound_is_percent(others->total_ns, all_ns, ADVISED_MIN);
	size_t used;

	if (!has_reads || !has_others) {
		diagnose_advise_on_waits(diagnosis, finding);
		return;
	}
	SET_TEXT(finding->next, READ_ADVICE " In the other %s, ",
		diagnose_plural(diagnosis, others->count, "call"));
	used = strlen(finding->next);
	advise_on_others(diagnosis, occurrences_top_node(others), finding->next + used,
		sizeof finding->next - used);
	/* it goes on in the middle of a sentence */
	finding->next[used] = (char)tolower((unsigned char)finding->next[used]);
}
