/* SPDX-License-Identifier: MIT
 *
 * The rule about memory that ran out.
 */
#include "report/diagnose/diagnosis_internal.h"
#include <string.h>

/* Sets what does not depend on who reported the failure. It costs the run, not time. */
static void set_exhausted(struct finding *finding, uint32_t node, uint64_t at_ns, uint64_t bytes)
{
	finding->state = FINDING_FOUND;
	finding->ends_run = true;
	finding->confidence = CONFIDENCE_HIGH;
	finding->node = node;
	finding->impact_bytes = bytes;
	finding->has_example = true;
	finding->example_ns = at_ns;
	SET_TEXT(finding->view, "memory");
}

static void set_torch_oom(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct memory_owners *memory = diagnosis->profile->memory;
	const struct memory_oom *oom = &memory->ooms[memory->oom_count - 1];

	set_exhausted(finding, oom->node, oom->time_ns, oom->requested_bytes);
	finding->count = memory->counts.ooms;
	SET_TEXT(finding->sentence, "PyTorch ran out of memory on GPU %u: %s were requested.",
		oom->device, diagnose_bytes(diagnosis, oom->requested_bytes));
	SET_TEXT(finding->evidence, "%s; tensors held %s of %s that PyTorch had reserved",
		diagnose_plural(diagnosis, memory->counts.ooms, "failed request"),
		diagnose_bytes(diagnosis, oom->allocated),
		diagnose_bytes(diagnosis, oom->reserved));
	SET_TEXT(finding->reason, "PyTorch's allocator reported it");
	SET_TEXT(finding->next,
		"See what was live at that time (column `at OOM`): smaller batches, activation "
		"checkpointing, or no references to old tensors; against unallocated reserved "
		"memory PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.");
}

static void set_capacity(struct diagnosis *diagnosis, struct finding *finding,
	const struct failed_allocation *failed)
{
	const struct trace_device *device = process_device(diagnosis->process, failed->device);

	if (memory_is_device(failed->kind) && device && device->memory_bytes > failed->held)
		SET_TEXT(finding->evidence,
			"this process had allocated %s of the GPU's %s, so at most %s were free",
			diagnose_bytes(diagnosis, failed->held),
			diagnose_bytes(diagnosis, device->memory_bytes),
			diagnose_bytes(diagnosis, device->memory_bytes - failed->held));
	else
		SET_TEXT(finding->evidence, "this process had allocated %s of %s memory",
			diagnose_bytes(diagnosis, failed->held), memory_kind_name(failed->kind));
}

static void set_failed_allocation(struct diagnosis *diagnosis, struct finding *finding,
	const struct failed_allocation *failed)
{
	const struct trace_text api = reader_name(diagnosis->process->reader, failed->api);

	set_exhausted(finding, failed->node, failed->time_ns, failed->requested_bytes);
	finding->count = diagnosis->profile->memory->counts.failed_allocations;
	SET_TEXT(finding->sentence, "%s of %s failed: out of memory.",
		diagnose_escaped(diagnosis, api.bytes, api.length),
		diagnose_bytes(diagnosis, failed->requested_bytes));
	set_capacity(diagnosis, finding, failed);
	SET_TEXT(finding->reason, "the call returned the error, and as much was not allocated "
				  "later");
	SET_TEXT(finding->next, "See what was live at that time (column `at OOM`): free what is "
				"no longer used, reuse buffers, or allocate less at once.");
}

void diagnose_out_of_memory(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct memory_owners *memory = diagnosis->profile->memory;
	const struct failed_allocation *failed = memory_owners_last_failed(memory);

	if (memory->oom_count)
		set_torch_oom(diagnosis, finding);
	else if (failed)
		set_failed_allocation(diagnosis, finding, failed);
	else if (!memory->level_count)
		finding_set_unchecked(finding, "the trace has no allocations");
}
