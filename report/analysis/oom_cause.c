/* SPDX-License-Identifier: MIT */
#include "report/analysis/oom_cause.h"
#include "report/analysis/memory_leaks.h"
#include "report/base/compare.h"
#include "report/text/format_number.h"
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define OTHERS_SHARE 20u /* others are mentioned from 1 / 20 of the GPU's memory on */

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* ---- growth ---- */

/* Sets growth_per_step and grown by what leaks of the device's memory, or of its tensors. */
static void set_growth(struct process *process, uint32_t device, struct oom_cause *cause)
{
	const struct memory_leaks *leaks = NULL;

	if (!memory_leaks_unchecked(process) && memory_leaks_possible(process))
		leaks = memory_leaks_of(process);
	for (size_t i = 0; leaks && i < leaks->count && leaks->leaks[i].is_leak; i++) {
		const struct memory_leak *leak = &leaks->leaks[i];

		if (leak->held->device != device ||
			(cause->of_torch ? leak->held->kind != MEMORY_TENSOR
					 : !memory_is_device(leak->held->kind)))
			continue;
		cause->growth_per_step = (uint64_t)llround(leak->held->growth.rate);
		cause->grown = leak->left_bytes;
		return;
	}
}

/* ---- the causes ---- */

static const struct device_memory *first_sample(const struct process *process, uint32_t device)
{
	const struct memory_owners *memory = process->profile->memory;

	for (uint32_t i = 0; i < memory->device_count; i++)
		if (memory->devices[i].device == device)
			return &memory->devices[i];
	return NULL;
}

/* What others held at the first allocation. */
static uint64_t first_others(const struct device_memory *sample)
{
	return sample ? minus(minus(sample->total_bytes, sample->held), sample->free_bytes) : 0;
}

/* Sets the members about the GPU. `failed`: the call that failed, NULL: none. */
static void set_capacity(struct process *process, uint32_t device_number,
	const struct failed_allocation *failed, struct oom_cause *cause)
{
	const struct trace_device *device = process_device(process, device_number);
	const struct device_memory *sample = first_sample(process, device_number);

	cause->is_free_known = failed && failed->total_bytes;
	cause->total = cause->is_free_known ? failed->total_bytes
		       : sample             ? sample->total_bytes
		       : device             ? device->memory_bytes
					    : 0;
	cause->free = cause->is_free_known
			      ? failed->free_bytes
			      : minus(minus(cause->total, cause->held), first_others(sample));
	/* CUDA refuses a request because less is free. */
	if (failed && !cause->is_free_known)
		cause->free = min_u64(cause->free, cause->asked);
	cause->others = minus(minus(cause->total, cause->held), cause->free);
}

/* Returns what others hold beyond a context. If it has grown since the first allocation, that
 * growth at least. */
static uint64_t suspicious_others(const struct oom_cause *cause, const struct device_memory *sample)
{
	const uint64_t grown = sample ? minus(cause->others, first_others(sample)) : 0,
		       beyond = max_u64(minus(cause->others, OOM_CONTEXT_BYTES),
			       minus(grown, OOM_CONTEXT_BYTES / 2));

	return beyond >= cause->total / OTHERS_SHARE ? beyond : 0;
}

static bool is_fragmented(const struct oom_cause *cause)
{
	if (!cause->of_torch)
		return cause->is_free_known && cause->free >= cause->asked;
	return cause->gaps.known && cause->gaps.free_bytes >= cause->asked &&
	       cause->gaps.largest < cause->asked;
}

/* `limited`: the allocator did not call CUDA. */
static enum oom_cause_kind find_kind(
	const struct oom_cause *cause, bool limited, const struct device_memory *sample)
{
	const uint64_t others = suspicious_others(cause, sample);

	if (!cause->total)
		return is_fragmented(cause) ? OOM_FRAGMENTATION : OOM_UNKNOWN;
	if (limited && cause->free >= cause->asked)
		return OOM_LIMIT;
	if (others && cause->asked <= cause->free + others)
		return OOM_OTHERS;
	if (cause->asked > minus(cause->total, cause->others))
		return OOM_TOO_LARGE;
	if (cause->grown && cause->asked <= cause->free + cause->grown)
		return OOM_LEAK;
	return is_fragmented(cause) ? OOM_FRAGMENTATION : OOM_LIVE;
}

struct oom_cause oom_cause_of_torch(struct process *process, const struct memory_oom *oom)
{
	const struct memory_owners *memory = process->profile->memory;
	/* The last call failed after everything in the cache was released. */
	const struct failed_allocation *failed = NULL;
	struct oom_cause cause = { .asked = oom->requested_bytes,
		.held = oom->held,
		.gaps = oom->gaps,
		.of_torch = true };
	/* If not all of the allocator's calls were seen, CUDA may have failed unseen. */
	const bool limited = !oom->failed && oom->outside_allocator >= 0;

	for (uint32_t i = oom->first_failed; oom->failed && i < memory->failed_count &&
					     memory->failed[i].time_ns <= oom->time_ns;
		i++)
		if (memory->failed[i].tid == oom->tid && memory->failed[i].device == oom->device)
			failed = &memory->failed[i];
	set_capacity(process, oom->device, failed, &cause);
	set_growth(process, oom->device, &cause);
	cause.kind = find_kind(&cause, limited, first_sample(process, oom->device));
	return cause;
}

/* Returns whether the call is one that PyTorch's allocator made before it reported the failure. */
static bool is_of_torch(const struct memory_owners *memory, const struct failed_allocation *failed)
{
	for (uint32_t i = 0; i < memory->oom_count; i++)
		if (memory->ooms[i].failed && failed->tid == memory->ooms[i].tid &&
			failed->device == memory->ooms[i].device &&
			failed - memory->failed >= (ptrdiff_t)memory->ooms[i].first_failed &&
			failed->time_ns <= memory->ooms[i].time_ns)
			return true;
	return false;
}

struct oom_cause oom_cause_of_call(struct process *process, const struct failed_allocation *failed)
{
	struct oom_cause cause = { .asked = failed->requested_bytes, .held = failed->held };

	if (!memory_is_device(failed->kind) || is_of_torch(process->profile->memory, failed))
		return cause;
	set_capacity(process, failed->device, failed, &cause);
	set_growth(process, failed->device, &cause);
	cause.kind = find_kind(&cause, false, first_sample(process, failed->device));
	return cause;
}

/* ---- words ---- */

const char *oom_cause_name(enum oom_cause_kind kind)
{
	static const char *const names[] = { "unknown", "limit", "others", "too_large", "leak",
		"fragmentation", "live" };

	return names[kind];
}

/* The figures of a cause as text. */
struct cause_figures {
	char asked[FORMAT_NUMBER_BYTES], held[FORMAT_NUMBER_BYTES], total[FORMAT_NUMBER_BYTES],
		free[FORMAT_NUMBER_BYTES], others[FORMAT_NUMBER_BYTES], growth[FORMAT_NUMBER_BYTES],
		grown[FORMAT_NUMBER_BYTES], inside[FORMAT_NUMBER_BYTES],
		largest[FORMAT_NUMBER_BYTES];
};

static struct cause_figures format_figures(const struct oom_cause *cause, bool iec, bool ascii)
{
	struct cause_figures figures;
	const struct {
		char *text;
		uint64_t bytes;
	} all[] = { { figures.asked, cause->asked }, { figures.held, cause->held },
		{ figures.total, cause->total }, { figures.free, cause->free },
		{ figures.others, cause->others }, { figures.growth, cause->growth_per_step },
		{ figures.grown, cause->grown }, { figures.inside, cause->gaps.free_bytes },
		{ figures.largest, cause->gaps.largest } };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		format_with_unit(all[i].text, UNIT_BYTES, clamp_to_i64(all[i].bytes), iec, ascii);
	return figures;
}

static void fragmentation_sentence(const struct oom_cause *cause,
	const struct cause_figures *figures, char text[OOM_CAUSE_TEXT])
{
	if (!cause->of_torch)
		snprintf(text, OOM_CAUSE_TEXT,
			"fragmentation: the GPU had %s free, but not in one piece of %s",
			figures->free, figures->asked);
	else
		snprintf(text, OOM_CAUSE_TEXT,
			"fragmentation: %s were free in %u gaps inside PyTorch's segments, the "
			"largest %s; %s were requested",
			figures->inside, cause->gaps.gaps, figures->largest, figures->asked);
}

void oom_cause_sentence(
	const struct oom_cause *cause, bool iec, bool ascii, char text[OOM_CAUSE_TEXT])
{
	const struct cause_figures figures = format_figures(cause, iec, ascii);
	size_t used;

	text[0] = '\0';
	switch (cause->kind) {
	case OOM_UNKNOWN:
		break;
	case OOM_LIMIT:
		snprintf(text, OOM_CAUSE_TEXT,
			"a limit of PyTorch's allocator: it made no call of CUDA, and %s of the "
			"GPU's %s were not allocated",
			figures.free, figures.total);
		break;
	case OOM_OTHERS:
		snprintf(text, OOM_CAUSE_TEXT,
			"other processes: %s of the GPU's %s were neither free nor allocated by "
			"this process, which is more than CUDA itself needs",
			figures.others, figures.total);
		break;
	case OOM_TOO_LARGE:
		used = (size_t)snprintf(text, OOM_CAUSE_TEXT,
			"too large: %s were requested, and the GPU has %s", figures.asked,
			figures.total);
		if (cause->others)
			snprintf(text + used, OOM_CAUSE_TEXT - used,
				", of which %s were neither free nor allocated by this process",
				figures.others);
		break;
	case OOM_LEAK:
		snprintf(text, OOM_CAUSE_TEXT, "growth: each step left %s of %s, %s in all",
			figures.growth, cause->of_torch ? "tensors" : "device memory",
			figures.grown);
		break;
	case OOM_FRAGMENTATION:
		fragmentation_sentence(cause, &figures, text);
		break;
	case OOM_LIVE:
		snprintf(text, OOM_CAUSE_TEXT,
			"too much at once: the program held %s of the GPU's %s, %s were free",
			figures.held, figures.total, figures.free);
		break;
	}
}

const char *oom_cause_advice(const struct oom_cause *cause)
{
	static const char *const advice[] = {
		[OOM_UNKNOWN] = "",
		[OOM_LIMIT] = "Look for torch.cuda.set_per_process_memory_fraction, or a limit "
			      "in PYTORCH_CUDA_ALLOC_CONF.",
		[OOM_OTHERS] = "See with nvidia-smi which processes use the GPU.",
		[OOM_TOO_LARGE] = "Allocate less at once: smaller batches or chunks.",
		[OOM_LEAK] = "Look for what keeps memory alive from step to step: losses or "
			     "outputs kept without .item() or .detach(), caches that only grow.",
		[OOM_FRAGMENTATION] = "Use PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, pad "
				      "to a few sizes, allocate long-lived tensors first.",
		[OOM_LIVE] = "See what was live at that time (column `at OOM`): smaller batches, "
			     "activation checkpointing, no references to old tensors.",
	};

	if (cause->kind == OOM_FRAGMENTATION && !cause->of_torch)
		return "Allocate large buffers once, before small ones, and reuse them.";
	if (cause->kind == OOM_LIVE && !cause->of_torch)
		return "See what was live at that time (column `at OOM`): free what is no longer "
		       "used. If the program has an allocator of its own, see what it keeps.";
	return advice[cause->kind];
}
