/* SPDX-License-Identifier: MIT
 *
 * Rules about who else needs the memory of the GPU: memory outside PyTorch's allocator, managed
 * memory, and other processes.
 */
#include "report/analysis/memory_groups.h"
#include "report/analysis/memory_waste.h"
#include "report/analysis/oom_cause.h"
#include "report/base/compare.h"
#include "report/diagnose/diagnosis_internal.h"
#include <string.h>

/* Returns the memory of a GPU; 0: not known. */
static uint64_t capacity_of(const struct diagnosis *diagnosis, uint32_t device_number)
{
	const struct trace_device *device = process_device(diagnosis->process, device_number);

	return device ? device->memory_bytes : 0;
}

/* ---- outside PyTorch's allocator ---- */

/* Writes which library allocated most of it, if call stacks name one. Of an allocation without
 * tensors the owner is known by its call path and, where a native stack was recorded, by the
 * library that called CUDA. */
static void name_library(
	struct diagnosis *diagnosis, const struct memory_moment *end, char *text, size_t room)
{
	struct memory_groups groups = memory_groups_of_unknown(diagnosis->process, end, BY_LIBRARY);

	*text = '\0';
	if (groups.count && groups.groups[0].key) {
		const struct string_view name = memory_group_name(
			diagnosis->process, &groups.groups[0], BY_LIBRARY);

		finding_set_text(text, room, "; %s of it by %s",
			diagnose_bytes(diagnosis, groups.groups[0].bytes),
			diagnose_escaped(diagnosis, name.bytes, name.length));
	}
	memory_groups_free(&groups);
}

static void set_outside(
	struct diagnosis *diagnosis, struct finding *finding, const struct memory_moment *end)
{
	struct memory_groups paths = memory_groups_of_unknown(diagnosis->process, end, BY_PATH);
	const struct memory_group *most = &paths.groups[0];
	char library[160], lines[256];

	name_library(diagnosis, end, library, sizeof library);
	diagnose_python_lines(diagnosis, most->stack, lines, sizeof lines);
	finding_set_found(finding, *library ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM);
	SET_TEXT(finding->reason, "%s",
		*library ? "measured; the call stack names the library"
			 : "measured; the trace has no call stack that names the library");
	SET_TEXT(finding->sentence,
		"%s of device memory are allocated past PyTorch's allocator, by a library or an "
		"extension.",
		diagnose_bytes(diagnosis, end->figures.unknown));
	SET_TEXT(finding->evidence,
		"%s of the %s that the program holds at the end, in %s; the path below allocated "
		"%s%s%s",
		diagnose_share(diagnosis, end->figures.unknown, end->figures.reserved),
		diagnose_bytes(diagnosis, end->figures.reserved),
		diagnose_plural(diagnosis, end->figures.unknown_segments, "allocation"),
		diagnose_bytes(diagnosis, most->bytes), library, lines);
	SET_TEXT(finding->next,
		"Bound the workspace: CUBLAS_WORKSPACE_CONFIG for cuBLAS, "
		"torch.backends.cudnn.benchmark_limit for cuDNN, NCCL_BUFFSIZE for NCCL. Have an "
		"extension allocate through PyTorch, so that its memory is shared.");
	SET_TEXT(finding->view, "memory --by library --at end");
	finding->node = most->node;
	finding->count = end->figures.unknown_segments;
	finding->impact_bytes = end->figures.unknown;
	finding->has_example = true;
	finding->example_ns = most->since_ns;
	memory_groups_free(&paths);
}

void diagnose_memory_outside(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct memory_level *level = diagnose_tensor_level(diagnosis);
	const struct memory_waste *waste;

	if (!level || !level->pool.peak) {
		finding_set_unchecked(finding, "the trace has no tensors of PyTorch's allocator");
		return;
	}
	if ((uint64_t)diagnosis->profile->totals.reserved_peak < LIMIT_UNUSED_BYTES)
		return;
	waste = memory_waste_of(diagnosis->process);
	if (!waste || !waste->end || !waste->end->figures.segments)
		finding_set_unchecked(
			finding, "the trace has no segments (allocations of device memory)");
	else if (waste->end->figures.unknown >= LIMIT_UNUSED_BYTES &&
		 diagnose_is_share(
			 waste->end->figures.unknown, waste->end->figures.reserved, LIMIT_OUTSIDE))
		set_outside(diagnosis, finding, waste->end);
}

/* ---- managed memory ---- */

/* Returns the level of a kind of memory that was highest; NULL: none. */
static const struct memory_level *highest_level(const struct memory_owners *memory, uint32_t kind)
{
	const struct memory_level *highest = NULL;

	for (uint32_t i = 0; i < memory->level_count; i++)
		if (memory->levels[i].kind == kind &&
			(!highest || memory->levels[i].flow.held_max > highest->flow.held_max))
			highest = &memory->levels[i];
	return highest;
}

/* Returns the node that allocated most of a level. */
static uint32_t largest_site_node(
	const struct memory_owners *memory, const struct memory_level *level)
{
	const struct memory_site *largest = NULL;

	for (uint32_t i = 0; i < memory->site_count; i++)
		if (&memory->levels[memory->sites[i].level] == level &&
			(!largest || memory->sites[i].flow.alloc_bytes > largest->flow.alloc_bytes))
			largest = &memory->sites[i];
	return largest ? largest->node : 0;
}

void diagnose_managed_memory(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct memory_owners *memory = diagnosis->profile->memory;
	const struct memory_level *managed = highest_level(memory, TRACE_MEMORY_MANAGED);
	const uint32_t device = !managed || managed->device == UINT32_MAX ? 0 : managed->device;
	const uint64_t capacity = capacity_of(diagnosis, device);
	uint64_t own, needed;

	if (!managed)
		return;
	if (!capacity) {
		finding_set_unchecked(
			finding, "the trace does not have the size of the GPU's memory");
		return;
	}
	own = device == diagnosis->profile->totals.level_device
		      ? (uint64_t)diagnosis->profile->totals.reserved_peak
		      : 0;
	needed = managed->flow.held_max + own;
	if (needed <= capacity)
		return;
	finding_set_found(finding, CONFIDENCE_MEDIUM);
	SET_TEXT(finding->reason,
		"sizes are measured; how much of it GPU work touches is not recorded");
	SET_TEXT(finding->sentence,
		"The program needs %s more managed and device memory than GPU %u has: pages move "
		"between host and GPU.",
		diagnose_bytes(diagnosis, needed - capacity), device);
	SET_TEXT(finding->evidence,
		"%s of managed memory and %s of device memory, each at its peak; the GPU has %s",
		diagnose_bytes(diagnosis, managed->flow.held_max), diagnose_bytes(diagnosis, own),
		diagnose_bytes(diagnosis, capacity));
	SET_TEXT(finding->next,
		"Process the data in parts that fit, with cudaMemPrefetchAsync before each, or "
		"cudaMemAdvise what the GPU only reads.");
	SET_TEXT(finding->view, "memory");
	finding->node = largest_site_node(memory, managed);
	finding->count = managed->flow.allocs;
	finding->impact_bytes = needed - capacity;
	finding->has_example = true;
	finding->example_ns = managed->peak_ns;
}

/* ---- other processes ---- */

/* Returns why memory ran out the last time; `*failed` is the call of CUDA that failed, NULL:
 * PyTorch reported it. */
static struct oom_cause last_cause(
	const struct diagnosis *diagnosis, const struct failed_allocation **failed)
{
	const struct memory_owners *memory = diagnosis->profile->memory;

	*failed = memory->oom_count ? NULL : memory_owners_last_failed(memory);
	if (memory->oom_count)
		return oom_cause_of_torch(diagnosis->process, &memory->ooms[memory->oom_count - 1]);
	return *failed ? oom_cause_of_call(diagnosis->process, *failed)
		       : (struct oom_cause){ .kind = OOM_UNKNOWN };
}

static void set_others(
	struct diagnosis *diagnosis, struct finding *finding, const struct oom_cause *cause)
{
	finding_set_found(finding, cause->is_free_known ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM);
	SET_TEXT(finding->reason, "%s",
		cause->is_free_known ? "measured: the driver said what was free when it failed"
				     : "inferred: CUDA refused what would have fit beside this "
				       "process and a context");
	SET_TEXT(finding->sentence,
		"Something else uses %s%s of the GPU's memory, so a request of %s failed.",
		cause->is_free_known ? "" : "at least ", diagnose_bytes(diagnosis, cause->others),
		diagnose_bytes(diagnosis, cause->asked));
	SET_TEXT(finding->evidence,
		"the GPU has %s, of which this process had allocated %s and %s%s were free; "
		"CUDA's context needs less than %s",
		diagnose_bytes(diagnosis, cause->total), diagnose_bytes(diagnosis, cause->held),
		cause->is_free_known ? "" : "at most ", diagnose_bytes(diagnosis, cause->free),
		diagnose_bytes(diagnosis, OOM_CONTEXT_BYTES));
	SET_TEXT(finding->next,
		"See with nvidia-smi which processes use the GPU, and end them or choose another "
		"GPU (CUDA_VISIBLE_DEVICES).");
	SET_TEXT(finding->view, "memory --ledger");
	finding->explains_end = true;
	finding->count = 1;
	finding->impact_bytes = cause->others;
	finding->has_example = true;
}

void diagnose_other_process(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct memory_owners *memory = diagnosis->profile->memory;
	const struct failed_allocation *failed;
	const struct oom_cause cause = last_cause(diagnosis, &failed);
	const struct memory_oom *oom = memory->oom_count ? &memory->ooms[memory->oom_count - 1]
							 : NULL;

	if (!memory->level_count && !oom && !failed)
		finding_set_unchecked(finding, "the trace has no allocations");
	else if ((oom || failed) && !cause.total)
		finding_set_unchecked(
			finding, "the trace does not have the size of the GPU's memory");
	if (cause.kind != OOM_OTHERS || (!oom && !failed))
		return;
	set_others(diagnosis, finding, &cause);
	finding->node = oom ? oom->node : failed->node;
	finding->example_ns = oom ? oom->time_ns : failed->time_ns;
}
