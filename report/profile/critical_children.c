/* SPDX-License-Identifier: MIT
 * Decides where what happened in the target instance is kept below it. What ran forward is a
 * child of the range around it. What ran backward is kept below the modules and operators it ran
 * backward for:
 *
 *	step 7                                            step 7
 *	    autograd::engine::evaluate_function: A            (backward)
 *	        AddmmBackward0  -> F in Net.fc                    Net
 *	            aten::mm                                          fc
 *	        aten::add_                                                aten::linear (bwd)
 *	    autograd::engine::evaluate_function: B                            AddmmBackward0
 *	        AccumulateGrad                                                    aten::mm
 *	                                                          (gradient accumulation)
 *	                                                              aten::add_
 *	                                                              AccumulateGrad
 *
 * `(backward)` includes all time of the engine in that instance. What is in no backward function
 * and in no sum of gradients is in that row alone.
 *
 * A module that a backward function computes again is named after its call in the forward pass.
 * Its GPU time is kept beside that call. Its time on the CPU is kept where it ran.
 */
#include "report/profile/profile_state.h"
#include "report/base/alloc.h"
#include "report/profile/node_placement.h"
#include <string.h>

/* Ranges around an operator that are kept apart, innermost first. */
#define PATH_MAX 256u

static bool is_engine_instance(const struct profile *profile, const struct instance *instance)
{
	return instance->form == INSTANCE_ONE && instance->trace_node &&
	       node_placement_is_engine(profile->reader, instance->trace_node);
}

static struct instance *descend_to_group(
	struct instance *of, uint32_t node, uint32_t trace_node, const struct instance *instance)
{
	struct instance *group = instance_group(of, INSTANCE_TRACE_NODE, node, trace_node);

	instance_add(group, instance);
	return group;
}

static struct instance *critical_backward_group(
	struct profile *profile, struct instance *of, const struct instance *instance)
{
	const uint32_t node = tree_child(profile->tree, of->node,
		string_table_intern(profile->texts, "(backward)", 10), 0, NODE_BACKWARD);

	return descend_to_group(of, node, 0, instance);
}

/* The trace node of the innermost open range of the program around `of`. 0: none. */
static uint32_t trace_node_around(const struct profile *profile, const struct instance *of)
{
	while (of && (!of->trace_node || is_engine_instance(profile, of)))
		of = of->parent;
	return of ? of->trace_node : 0;
}

/* Descends along the modules and ranges around `operator`, except those that are open around the
 * whole (`around`). */
static struct instance *descend_trace_nodes(struct profile *profile, struct instance *of,
	uint32_t operator, uint32_t around, const struct instance *instance)
{
	struct trace_reader *reader = profile->reader;
	uint32_t path[PATH_MAX], length = 0;

	for (uint32_t at = reader_node(reader, operator)->parent; at && length < PATH_MAX;
		at = reader_node(reader, at)->parent) {
		while (around > at) /* a parent's id is lower than its children's */
			around = reader_node(reader, around)->parent;
		if (around == at)
			break;
		if (!node_placement_is_engine(reader, at))
			path[length++] = at;
	}
	while (length--) {
		const uint32_t node = instance->nodes[path[length]];

		of = descend_to_group(
			of, node == NODE_UNRESOLVED ? of->node : node, path[length], instance);
	}
	return of;
}

/* Descends along the nodes between a range and the node of something that happened in it. These
 * are `unattributed`, or a range that began before the section. */
static struct instance *descend_nodes(
	struct profile *profile, struct instance *of, const struct instance *instance)
{
	uint32_t path[PATH_MAX], length = 0, node = profile->tree->nodes[instance->node].parent;

	for (; node && node != of->node && length < PATH_MAX;
		node = profile->tree->nodes[node].parent)
		path[length++] = node;
	if (node != of->node)
		return of;
	while (length--)
		of = descend_to_group(of, path[length], 0, instance);
	return of;
}

static void name_recomputed(struct profile *profile, struct instance *instance, uint32_t forward)
{
	static const char suffix[] = " (recompute)";
	const struct trace_text name = reader_name(
		profile->reader, reader_node(profile->reader, forward)->name);

	if (instance->label)
		return;
	instance->label_bytes = (uint32_t)(name.length + sizeof suffix - 1);
	instance->label = xcalloc(instance->label_bytes);
	memcpy(instance->label, name.bytes, name.length);
	memcpy(instance->label + name.length, suffix, sizeof suffix - 1);
}

/* The group that keeps `instance`, a module computed again in the backward function `of`; NULL: it
 * stays in `of`. Takes its GPU time out of `of`, so that it counts once. */
static struct instance *recomputed_owner(
	struct profile *profile, struct instance *of, struct instance *instance)
{
	struct instance *engine = of->parent;
	const uint32_t forward = profile->tree->nodes[instance->node].is_recompute
					 ? node_placement_forward_call(
						   profile->reader, instance->trace_node)
					 : 0;

	if (!forward || instance->form != INSTANCE_ONE)
		return NULL;
	name_recomputed(profile, instance, forward);
	if (profile->options.metric != METRIC_GPU || !engine ||
		!is_engine_instance(profile, engine))
		return NULL;
	of->gpu_ns -= instance->gpu_ns;
	engine->gpu_ns += instance->gpu_ns;
	return descend_trace_nodes(
		profile, engine, forward, trace_node_around(profile, engine), instance);
}

/* The instance or group inside `of` that keeps `instance`. */
static struct instance *critical_owner(
	struct profile *profile, struct instance *of, const struct instance *instance)
{
	const uint32_t above = profile->tree->nodes[instance->node].parent;
	const bool runs_backward = profile->tree->nodes[above].forward_node != 0;
	const uint32_t around = trace_node_around(profile, of);

	if (!runs_backward)
		return descend_nodes(profile, of, instance);
	if (!is_engine_instance(profile, of))
		of = critical_backward_group(profile, of, instance);
	of = descend_trace_nodes(profile, of,
		node_placement_operator(
			profile->reader, reader_node(profile->reader, instance->trace_node)->link),
		around, instance);
	return descend_to_group(of, above, 0, instance);
}

long double profile_critical_min(const struct profile *profile)
{
	const long double value = profile->options.target->value,
			  percent = profile->options.min_percent_of_target;

	return (value < 0 ? -value : value) * (percent == 0 ? 1 : percent < 0 ? 0 : percent) / 100;
}

bool profile_adopt_critical(struct profile *profile, struct instance *instance)
{
	const long double value = instance->value;
	const bool large = (value < 0 ? -value : value) >= profile_critical_min(profile);
	struct instance *of = instance->parent, *owner;

	if (value == 0 && !instance->children && !instance->groups)
		return false;
	if (is_engine_instance(profile, instance)) {
		instance_merge(critical_backward_group(profile, of, instance), instance);
		return true;
	}
	owner = recomputed_owner(profile, of, instance);
	instance_adopt(owner ? owner : critical_owner(profile, of, instance), instance, large);
	return true;
}
