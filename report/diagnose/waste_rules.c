/* SPDX-License-Identifier: MIT
 *
 * Rules about device memory that PyTorch reserves and no tensor uses. Several may hold of the same
 * bytes. Then the first of these is the finding, and the others find nothing: a request failed,
 * small tensors keep large segments, sizes change from step to step, segments stay empty, and,
 * without such a cause, much is reserved that tensors do not hold.
 */
#include "report/analysis/memory_waste.h"
#include "report/base/compare.h"
#include "report/diagnose/diagnosis_internal.h"

/* Returns what was found of the trace's segments. NULL: the finding says why they are not known, or
 * so little was reserved that the rules find nothing. */
static const struct memory_waste *segments_of(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct memory_level *level = diagnose_tensor_level(diagnosis);
	const struct memory_waste *waste;

	if (!level || !level->pool.peak) {
		finding_set_unchecked(finding, "the trace has no tensors of PyTorch's allocator");
		return NULL;
	}
	if (level->pool.reserved_peak_bytes < LIMIT_UNUSED_BYTES)
		return NULL;
	if (diagnosis->process->windows && diagnosis->process->windows->count > 1) {
		finding_set_unchecked(
			finding, "only parts of the run were recorded (PPERF_SCHEDULE)");
		return NULL;
	}
	waste = memory_waste_of(diagnosis->process);
	if (waste && waste->end && waste->late_reserved + waste->early_reserved)
		return waste;
	finding_set_unchecked(finding, "the trace has no segments (allocations of device memory)");
	return NULL;
}

static bool is_kept_by_small_tensors(const struct memory_waste *waste)
{
	return waste->kept.bytes >= LIMIT_UNUSED_BYTES &&
	       diagnose_is_share(
		       waste->kept.bytes, waste->end->figures.reserved, LIMIT_PINNED_SEGMENTS);
}

static uint64_t growth_of(uint64_t early, uint64_t late)
{
	return late > early ? late - early : 0;
}

/* Returns what was reserved and in no tensor when tensors held most, if that is worth a finding. */
static uint64_t unused_at_peak(const struct diagnosis *diagnosis)
{
	const struct memory_pool *pool = &diagnose_tensor_level(diagnosis)->pool;
	const uint64_t unused = growth_of(pool->peak, pool->reserved_at_peak);

	return unused >= LIMIT_UNUSED_BYTES &&
			       diagnose_is_share(unused, pool->reserved_at_peak, LIMIT_UNUSED)
		       ? unused
		       : 0;
}

/* Tensors of many sizes: either the reserved memory grows late and tensors do not need it, or much
 * of it is in no tensor even at their peak. */
static bool has_dynamic_shapes(const struct diagnosis *diagnosis, const struct memory_waste *waste)
{
	const uint64_t reserved = growth_of(waste->early_reserved, waste->late_reserved),
		       tensors = growth_of(waste->early_tensors, waste->late_tensors);

	if (waste->changing.sizes < LIMIT_SHAPES)
		return false;
	return unused_at_peak(diagnosis) ||
	       (reserved >= LIMIT_UNUSED_BYTES &&
		       diagnose_is_share(reserved, waste->late_reserved, LIMIT_SHAPES_GROWTH) &&
		       tensors * 1000 <= reserved * LIMIT_SHAPES_TENSORS);
}

static bool has_idle_cache(const struct memory_waste *waste)
{
	return waste->idle.bytes >= LIMIT_UNUSED_BYTES &&
	       diagnose_is_share(waste->idle.bytes, waste->end->figures.reserved, LIMIT_IDLE_CACHE);
}

static void set_bytes(
	struct finding *finding, uint32_t node, uint64_t count, uint64_t bytes, uint64_t at_ns)
{
	finding->node = node;
	finding->count = count;
	finding->impact_bytes = bytes;
	finding->has_example = true;
	finding->example_ns = at_ns;
}

/* ---- small tensors that keep segments ---- */

void diagnose_pinned_segments(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct memory_waste *waste = segments_of(diagnosis, finding);
	const struct wasted_segments *kept = waste ? &waste->kept : NULL;
	char lines[256];

	if (!waste || !is_kept_by_small_tensors(waste))
		return;
	finding_set_found(finding, CONFIDENCE_HIGH);
	SET_TEXT(finding->reason, "measured: the map of segments at the end");
	SET_TEXT(finding->sentence,
		"%s of %s are free but cannot be returned: %s of long-lived tensors keep them.",
		diagnose_bytes(diagnosis, kept->bytes),
		diagnose_plural(diagnosis, kept->count, "segment"),
		diagnose_bytes(diagnosis, kept->holding));
	diagnose_python_lines(diagnosis, kept->stack, lines, sizeof lines);
	SET_TEXT(finding->evidence,
		"%s are reserved at the end; these tensors were put into segments that existed, "
		"and for a quarter of the run nothing else filled half of one; %s of %s are kept "
		"by the path below%s",
		diagnose_bytes(diagnosis, waste->end->figures.reserved),
		diagnose_bytes(diagnosis, kept->path_bytes), diagnose_bytes(diagnosis, kept->bytes),
		lines);
	SET_TEXT(finding->next,
		"Allocate what lives long before the large temporary tensors, or .clone() it after "
		"they are freed and torch.cuda.empty_cache() was called. "
		"PYTORCH_ALLOC_CONF=expandable_segments:True frees the unused part.");
	SET_TEXT(finding->view, "memory --map --at end");
	set_bytes(finding, kept->node, kept->count, kept->bytes, kept->since_ns);
}

/* ---- sizes that change ---- */

void diagnose_dynamic_shapes(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct memory_waste *waste = segments_of(diagnosis, finding);
	const struct changing_sizes *changing = waste ? &waste->changing : NULL;
	uint64_t more;

	if (!waste || waste->refusals || is_kept_by_small_tensors(waste) ||
		!has_dynamic_shapes(diagnosis, waste))
		return;
	more = max_u64(
		unused_at_peak(diagnosis), growth_of(waste->early_reserved, waste->late_reserved));
	finding_set_found(finding, CONFIDENCE_MEDIUM);
	SET_TEXT(finding->reason, "measured; that the sizes are the cause is inferred");
	SET_TEXT(finding->sentence,
		"PyTorch reserves %s that tensors do not need, because their sizes change: the "
		"path "
		"below allocated %s.",
		diagnose_bytes(diagnosis, more),
		diagnose_plural(diagnosis, changing->sizes, "different size"));
	SET_TEXT(finding->evidence,
		"sizes from %s to %s; in the first fifth of the run at most %s reserved and %s in "
		"tensors, later %s and %s",
		diagnose_bytes(diagnosis, changing->smallest),
		diagnose_bytes(diagnosis, changing->largest),
		diagnose_bytes(diagnosis, waste->early_reserved),
		diagnose_bytes(diagnosis, waste->early_tensors),
		diagnose_bytes(diagnosis, waste->late_reserved),
		diagnose_bytes(diagnosis, waste->late_tensors));
	SET_TEXT(finding->next, "Pad to a few sizes (buckets), run the largest batch first, or set "
				"PYTORCH_ALLOC_CONF=expandable_segments:True.");
	SET_TEXT(finding->view, "memory --over-time");
	set_bytes(finding, changing->node, changing->sizes, more, waste->early_ns);
}

/* ---- empty segments ---- */

void diagnose_idle_cache(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct memory_waste *waste = segments_of(diagnosis, finding);
	const struct wasted_segments *idle = waste ? &waste->idle : NULL;
	char lines[256], range[160] = "";

	if (!waste || !has_idle_cache(waste) || is_kept_by_small_tensors(waste) ||
		has_dynamic_shapes(diagnosis, waste))
		return;
	finding_set_found(finding, CONFIDENCE_HIGH);
	SET_TEXT(finding->reason, "measured: the map of segments at the end");
	SET_TEXT(finding->sentence,
		"PyTorch keeps %s in %s that no tensor has used for the last quarter of the run.",
		diagnose_bytes(diagnosis, idle->bytes),
		diagnose_plural(diagnosis, idle->count, "empty segment"));
	diagnose_python_lines(diagnosis, idle->stack, lines, sizeof lines);
	if (idle->range)
		SET_TEXT(
			range, "all were allocated in %s; ", diagnose_node(diagnosis, idle->range));
	SET_TEXT(finding->evidence,
		"%s of the %s reserved at the end; %sthe path below allocated %s of them in %s%s",
		diagnose_share(diagnosis, idle->bytes, waste->end->figures.reserved),
		diagnose_bytes(diagnosis, waste->end->figures.reserved), range,
		diagnose_bytes(diagnosis, idle->path_bytes),
		diagnose_plural(diagnosis, idle->path_count, "segment"), lines);
	SET_TEXT(finding->next,
		"Call torch.cuda.empty_cache() once after the part of the program that needed "
		"them, or split its work: the largest part decides what is reserved.");
	SET_TEXT(finding->view, "memory --map --at end");
	set_bytes(finding, idle->node, idle->count, idle->bytes, idle->since_ns);
}

/* ---- fragmentation ---- */

static void set_refused(
	struct diagnosis *diagnosis, struct finding *finding, const struct memory_waste *waste)
{
	const struct refused_request *refused = &waste->refused;

	finding_set_found(finding, CONFIDENCE_HIGH);
	SET_TEXT(finding->reason, "measured: the map of segments when the request failed");
	SET_TEXT(finding->sentence,
		"A request of %s failed although %s were free inside segments: no gap was larger "
		"than %s.",
		diagnose_bytes(diagnosis, refused->requested),
		diagnose_bytes(diagnosis, refused->free_inside),
		diagnose_bytes(diagnosis, refused->largest_gap));
	SET_TEXT(finding->evidence,
		"%s like this; at the last one %s, %s of them in empty segments",
		diagnose_plural(diagnosis, waste->refusals, "failed request"),
		diagnose_plural(diagnosis, refused->gaps, "gap"),
		diagnose_bytes(diagnosis, refused->empty));
	SET_TEXT(finding->next,
		"Set PYTORCH_ALLOC_CONF=expandable_segments:True, or max_split_size_mb:%llu so "
		"that larger blocks stay whole, or make the sizes alike: %s were requested, "
		"%s was free.",
		(unsigned long long)(refused->requested >> 20),
		diagnose_bytes(diagnosis, refused->requested),
		diagnose_bytes(diagnosis, refused->largest_gap));
	SET_TEXT(finding->view, "memory --map");
	set_bytes(finding, 0, waste->refusals, refused->free_inside, refused->at_ns);
	/* With less free memory than this, the program was about to run out anyway. */
	finding->explains_end = diagnosis->profile->memory->counts.ooms > 0 &&
				diagnose_is_share(refused->free_inside,
					waste->end->figures.reserved, LIMIT_UNUSED);
}

/* Steps of which fewer do not show whether sizes change from one to the next. */
#define STEPS_TO_COMPARE 3u

/* Advises on sizes that change only where the reserved memory grew, or steps can be compared.
 * Without segments there is no advice but to record them. */
static void advise_on_unused(
	struct diagnosis *diagnosis, struct finding *finding, const struct memory_waste *waste)
{
	const struct steps *steps = diagnosis->process->steps;
	const bool may_change = waste && (waste->late_reserved > waste->early_reserved ||
						 (steps && steps_usual(steps) >= STEPS_TO_COMPARE));

	if (!waste)
		SET_TEXT(finding->next,
			"Record the segments to see why: LD_PRELOAD=libpperf.so, or a memory "
			"snapshot of PyTorch (torch.cuda.memory._record_memory_history() and "
			"_dump_snapshot()). pperf-report memory --map shows both.");
	else if (may_change)
		SET_TEXT(finding->next,
			"Sizes that change from step to step fragment the cache: "
			"PYTORCH_ALLOC_CONF=expandable_segments:True, pad to a few sizes, allocate "
			"growing buffers once.");
	else
		SET_TEXT(finding->next,
			"Set PYTORCH_ALLOC_CONF=expandable_segments:True, or call "
			"torch.cuda.empty_cache() once after initialisation. Fewer than %u steps "
			"do not show whether sizes that change are the cause.",
			STEPS_TO_COMPARE);
}

/* Reserved memory in no tensor at the peak, without a cause that another rule names. */
static void check_unused(
	struct diagnosis *diagnosis, struct finding *finding, const struct memory_waste *waste)
{
	const struct memory_level *level = diagnose_tensor_level(diagnosis);
	const struct memory_pool *pool = &level->pool;
	const uint64_t unused = unused_at_peak(diagnosis);
	const struct trace_device *device = process_device(
		diagnosis->process, diagnosis->profile->totals.level_device);

	if (!unused)
		return;
	finding_set_found(finding, CONFIDENCE_MEDIUM);
	SET_TEXT(finding->reason, "%s",
		waste ? "measured; cached blocks that later steps use again are part of it"
		      : "measured; what it is in is not known, because the trace has no segments: "
			"cached blocks that are used again, fragmentation, or the largest request "
			"of before");
	SET_TEXT(finding->sentence,
		"PyTorch reserves %s more than tensors hold when they hold most: %s of what it "
		"reserved.",
		diagnose_bytes(diagnosis, unused),
		diagnose_share(diagnosis, unused, pool->reserved_at_peak));
	SET_TEXT(finding->evidence, "at the peak of tensors: %s reserved, %s in tensors",
		diagnose_bytes(diagnosis, pool->reserved_at_peak),
		diagnose_bytes(diagnosis, pool->peak));
	advise_on_unused(diagnosis, finding, waste);
	SET_TEXT(finding->view, "memory");
	set_bytes(finding, pool->peak_node, 1, unused, level->peak_ns);
	if (!waste ||
		(device && device->memory_bytes &&
			!diagnose_is_share(unused, device->memory_bytes, LIMIT_UNUSED_OF_GPU)))
		finding->state = FINDING_NOTE;
}

void diagnose_memory_fragmentation(struct diagnosis *diagnosis, struct finding *finding)
{
	struct finding segments = { .state = FINDING_CLEAR };
	const struct memory_waste *waste = segments_of(diagnosis, &segments);
	const struct memory_level *level = diagnose_tensor_level(diagnosis);

	if (!level || !level->pool.peak)
		finding_set_unchecked(finding, segments.reason);
	else if (waste && waste->refusals)
		set_refused(diagnosis, finding, waste);
	else if (!waste || !(is_kept_by_small_tensors(waste) ||
				   has_dynamic_shapes(diagnosis, waste) || has_idle_cache(waste)))
		check_unused(diagnosis, finding, waste);
}
