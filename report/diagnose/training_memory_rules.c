/* SPDX-License-Identifier: MIT
 *
 * Rules about what a training program keeps: the states of two optimizers for the same parameters,
 * and outputs for the backward pass that fill the GPU.
 */
#include "report/analysis/memory_leaks.h"
#include "report/analysis/memory_waste.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/diagnose/diagnosis_internal.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- optimizer state ---- */

/* A tensor that an optimizer allocated and that is held at the end. */
struct state_tensor {
	uint64_t step; /* when: the number of the step's begin, 0: before the first one */
	uint64_t bytes, since_ns;
	uint32_t node;
};

struct state_tensors {
	struct state_tensor *tensors;
	size_t count, room;
};

/* The tensors that an optimizer allocated in one step. */
struct state_set {
	const struct state_tensor *tensors; /* by size */
	size_t count;
	uint64_t bytes;
};

static bool is_in_optimizer(const struct tree *tree, uint32_t node)
{
	while (node && tree->nodes[node].kind != NODE_OPTIMIZER)
		node = tree->nodes[node].parent;
	return node != 0;
}

COMPARE_BY_THREE(by_step_and_bytes, struct state_tensor, step, bytes, since_ns)

static uint64_t step_begin(const struct steps *steps, uint64_t at_ns)
{
	const struct step *step = steps_step_at(steps, at_ns);

	return step ? step->begin_ns + 1 : 0;
}

static struct state_tensors list_states(
	const struct diagnosis *diagnosis, const struct memory_moment *end)
{
	struct state_tensors list = { .count = 0 };

	for (size_t i = 0; i < end->block_count; i++) {
		const struct memory_block *block = &end->blocks[i];

		if (is_in_optimizer(diagnosis->profile->tree, block->node))
			*ARRAY_ADD(list.tensors, list.room, list.count) = (struct state_tensor){
				step_begin(diagnosis->process->steps, block->since_ns),
				block->bytes, block->since_ns, block->node
			};
	}
	if (list.count)
		qsort(list.tensors, list.count, sizeof *list.tensors, by_step_and_bytes);
	return list;
}

/* Returns the set that begins at `from`, and moves `from` behind it. */
static struct state_set next_set(const struct state_tensors *list, size_t *from)
{
	struct state_set set = { .tensors = &list->tensors[*from] };

	while (*from < list->count && list->tensors[*from].step == set.tensors->step) {
		set.bytes += list->tensors[(*from)++].bytes;
		set.count++;
	}
	return set;
}

/* Returns the bytes of tensors of the same sizes in both. */
static uint64_t equal_bytes(const struct state_set *one, const struct state_set *other)
{
	uint64_t equal = 0;

	for (size_t i = 0, j = 0; i < one->count && j < other->count;) {
		const uint64_t left = one->tensors[i].bytes, right = other->tensors[j].bytes;

		equal += left == right ? left : 0;
		i += left <= right;
		j += right <= left;
	}
	return equal;
}

static void set_state_twice(struct diagnosis *diagnosis, struct finding *finding,
	const struct state_set *first, const struct state_set *again)
{
	finding_set_found(finding, CONFIDENCE_HIGH);
	SET_TEXT(finding->reason, "measured: the tensors' sizes, and what is held at the end");
	SET_TEXT(finding->sentence, "Optimizer states are held twice: %s of them at the end.",
		diagnose_bytes(diagnosis, first->bytes + again->bytes));
	SET_TEXT(finding->evidence,
		"an optimizer's step allocated %s in %s, and a later one as many of the same "
		"sizes; neither was freed",
		diagnose_bytes(diagnosis, first->bytes),
		diagnose_plural(diagnosis, first->count, "tensor"));
	SET_TEXT(finding->next,
		"Drop the old optimizer before the new one takes its first step (del, and what "
		"refers to it: schedulers, lists, checkpoints), or load its state into the new "
		"one.");
	SET_TEXT(finding->view, "memory --by step --at end");
	finding->node = first->tensors[first->count - 1].node;
	finding->count = first->count;
	finding->impact_bytes = min_u64(first->bytes, again->bytes);
	finding->has_example = true;
	finding->example_ns = again->tensors[0].since_ns;
}

/* Looks for two sets of nearly the same sizes. Each set is compared with the largest one before. */
static void compare_states(
	struct diagnosis *diagnosis, struct finding *finding, const struct state_tensors *list)
{
	struct state_set largest = { .count = 0 };

	for (size_t from = 0; from < list->count;) {
		const struct state_set set = next_set(list, &from);

		if (largest.bytes &&
			diagnose_is_share(equal_bytes(&largest, &set),
				max_u64(largest.bytes, set.bytes), LIMIT_STATE_EQUAL)) {
			set_state_twice(diagnosis, finding, &largest, &set);
			return;
		}
		largest = set.bytes > largest.bytes ? set : largest;
	}
}

void diagnose_optimizer_twice(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct steps *steps = diagnosis->process->steps;
	const struct memory_waste *waste;
	struct state_tensors list;

	if (!diagnose_traits(diagnosis).trains) {
		finding_set_unchecked(finding, "the trace has no optimizer");
		return;
	}
	if (!steps || !steps->count || steps_overlap(steps)) {
		finding_set_unchecked(finding, NO_STEPS_FOUND);
		return;
	}
	waste = memory_waste_of(diagnosis->process);
	if (!waste || !waste->end || !waste->end->figures.blocks)
		return;
	list = list_states(diagnosis, waste->end);
	compare_states(diagnosis, finding, &list);
	if (finding->state == FINDING_FOUND &&
		!diagnose_is_share(
			finding->impact_bytes, waste->end->figures.tensors, LIMIT_STATE_SHARE))
		finding->state = FINDING_CLEAR;
	free(list.tensors);
}

/* ---- activations ---- */

/* Outputs that are kept for the backward pass at the tensors' peak. */
struct kept_outputs {
	uint64_t bytes;
	const struct memory_site *largest;
	/* By class of the module, or name of the operator outside of modules: the three largest. */
	struct kept_class {
		uint32_t name; /* of the trace */
		uint64_t bytes;
	} * classes;
	size_t class_count, class_room;
};

COMPARE_BY_LARGEST(by_class_bytes, struct kept_class, bytes, name)

static void add_kept_class(struct kept_outputs *kept, uint32_t name, uint64_t bytes)
{
	for (size_t i = 0; i < kept->class_count; i++)
		if (kept->classes[i].name == name) {
			kept->classes[i].bytes += bytes;
			return;
		}
	*ARRAY_ADD(kept->classes, kept->class_room, kept->class_count) = (struct kept_class){ name,
		bytes };
}

/* Returns the class of the innermost module around a node of the trace, else the node's name. */
static uint32_t class_around(struct trace_reader *reader, uint32_t node)
{
	uint32_t at = node;

	while (at && reader_node(reader, at)->kind != TRACE_NODE_MODULE)
		at = reader_node(reader, at)->parent;
	return at && reader_node(reader, at)->detail ? reader_node(reader, at)->detail
						     : reader_node(reader, node)->name;
}

static struct kept_outputs sum_kept_outputs(
	struct process *process, const struct memory_level *level)
{
	const struct memory_owners *memory = process->profile->memory;
	const struct memory_lifetimes *lifetimes = memory_lifetimes_of(process);
	uint8_t *has_backward = operators_with_backward(process->reader);
	struct kept_outputs kept = { .bytes = 0 };

	for (uint32_t i = 0; i < memory->site_count && i < lifetimes->site_count; i++) {
		const struct memory_site *site = &memory->sites[i];
		const uint32_t node = lifetimes->paths[lifetimes->path_of_site[i]].trace_node;

		if (&memory->levels[site->level] != level || !site->flow.at_peak ||
			!is_kept_by_graph(process->reader, has_backward, node))
			continue;
		kept.bytes += site->flow.at_peak;
		add_kept_class(&kept, class_around(process->reader, node), site->flow.at_peak);
		if (!kept.largest || site->flow.at_peak > kept.largest->flow.at_peak)
			kept.largest = site;
	}
	if (kept.class_count)
		qsort(kept.classes, kept.class_count, sizeof *kept.classes, by_class_bytes);
	free(has_backward);
	return kept;
}

/* Writes the three largest classes, as `ReLU 61 %, Linear 39 %`. */
static void name_classes(
	struct diagnosis *diagnosis, const struct kept_outputs *kept, char *text, size_t room)
{
	size_t used = 0;

	*text = '\0';
	for (size_t i = 0; i < kept->class_count && i < 3; i++) {
		const struct trace_text name = reader_name(
			diagnosis->process->reader, kept->classes[i].name);
		const int length = snprintf(text + used, room - used, "%s%s %s", i ? ", " : "",
			diagnose_escaped(diagnosis, name.bytes, name.length),
			diagnose_share(diagnosis, kept->classes[i].bytes, kept->bytes));

		used += length > 0 && (size_t)length < room - used ? (size_t)length : 0;
	}
}

static void set_activations(struct diagnosis *diagnosis, struct finding *finding,
	const struct memory_level *level, const struct kept_outputs *kept, uint64_t capacity)
{
	char classes[256], lines[256];

	finding_set_found(finding, CONFIDENCE_HIGH);
	SET_TEXT(finding->reason, "measured; what checkpointing frees of it is not known");
	SET_TEXT(finding->sentence,
		"Outputs that autograd keeps for the backward pass are %s of what tensors hold at "
		"the peak, on a GPU that is nearly full.",
		diagnose_share(diagnosis, kept->bytes, level->pool.peak));
	name_classes(diagnosis, kept, classes, sizeof classes);
	diagnose_python_lines(diagnosis, kept->largest->stack, lines, sizeof lines);
	SET_TEXT(finding->evidence,
		"%s of %s in tensors; %s of the GPU's %s are allocated; by module: %s%s",
		diagnose_bytes(diagnosis, kept->bytes), diagnose_bytes(diagnosis, level->pool.peak),
		diagnose_bytes(diagnosis, (uint64_t)diagnosis->profile->totals.reserved_peak),
		diagnose_bytes(diagnosis, capacity), classes, lines);
	SET_TEXT(finding->next,
		"Recompute them: torch.utils.checkpoint around these layers, a smaller batch with "
		"gradient accumulation, or bfloat16 (torch.autocast).");
	SET_TEXT(finding->view, "critical -m allocated");
	finding->upper_bound = true;
	finding->node = kept->largest->node;
	finding->count = 1;
	finding->impact_bytes = kept->bytes;
	finding->has_example = true;
	finding->example_ns = level->peak_ns;
}

void diagnose_activations_kept(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct memory_level *level = diagnose_tensor_level(diagnosis);
	const struct trace_device *device = level ? process_device(
							    diagnosis->process, level->device)
						  : NULL;
	const uint64_t reserved = (uint64_t)diagnosis->profile->totals.reserved_peak;
	struct kept_outputs kept;

	if (!level || !level->pool.peak) {
		finding_set_unchecked(finding, "the trace has no tensors of PyTorch's allocator");
		return;
	}
	if (!device || !device->memory_bytes) {
		finding_set_unchecked(
			finding, "the trace does not have the size of the GPU's memory");
		return;
	}
	if (!diagnosis->profile->memory->counts.ooms &&
		!diagnose_is_share(reserved, device->memory_bytes, LIMIT_TIGHT))
		return;
	kept = sum_kept_outputs(diagnosis->process, level);
	if (kept.largest && diagnose_is_share(kept.bytes, level->pool.peak, LIMIT_ACTIVATIONS))
		set_activations(diagnosis, finding, level, &kept, device->memory_bytes);
	free(kept.classes);
}
