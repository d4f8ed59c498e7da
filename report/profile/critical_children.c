/* SPDX-License-Identifier: MIT
 * fold_critical.c: where what happened in the worst instance is kept below it. What ran where it stands is a child of
 * the range around it; what ran backward is kept by what it ran backward for:
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
 * `(backward)` has all that the engine took in that instance. What of it lies in no backward function, and in no sum of
 * gradients, is in that row alone.
 */
#include "report/profile/profile_state.h"
#include "report/profile/node_placement.h"

#define PATH_MOST 256u /* ranges around an operator that are told apart, from the inside out */

static bool is_engine(const struct fold *fold, const struct instance *instance)
{
	return instance->form == INSTANCE_ONE && instance->place &&
	       placement_is_engine(fold->reader, instance->place);
}

static struct instance *step_into(
	struct instance *of, uint32_t node, uint32_t place, const struct instance *instance)
{
	struct instance *group = instance_group(of, INSTANCE_PLACE, node, place);

	instance_add(group, instance);
	return group;
}

static struct instance *into_backward(struct fold *fold, struct instance *of, const struct instance *instance)
{
	const uint32_t node =
		tree_child(fold->tree, of->node, text_id(fold->texts, "(backward)", 10), 0, NODE_BACKWARD);

	return step_into(of, node, 0, instance);
}

/* The place of the innermost range of the program that is open around, 0 if none is. */
static uint32_t place_around(const struct fold *fold, const struct instance *of)
{
	while (of && (!of->place || is_engine(fold, of)))
		of = of->parent;
	return of ? of->place : 0;
}

/* Down the modules and ranges around the operator, but for those that are open `around` the whole, too. */
static struct instance *step_along(struct fold *fold, struct instance *of, uint32_t operator, uint32_t around,
	const struct instance *instance)
{
	struct trace_reader *reader = fold->reader;
	uint32_t path[PATH_MOST], length = 0;

	for (uint32_t at = reader_place(reader, operator)->parent; at && length < PATH_MOST;
		at = reader_place(reader, at)->parent) {
		while (around > at) /* a parent's number is below its children's */
			around = reader_place(reader, around)->parent;
		if (around == at)
			break;
		if (!placement_is_engine(reader, at))
			path[length++] = at;
	}
	while (length--) {
		const uint32_t node = instance->nodes[path[length]];

		of = step_into(of, node == NAMES_OPEN ? of->node : node, path[length], instance);
	}
	return of;
}

/* Down what lies between a range and the node of something that happened in it: `unattributed`, or a range that began
 * before the section. */
static struct instance *step_down(struct fold *fold, struct instance *of, const struct instance *instance)
{
	uint32_t path[PATH_MOST], length = 0, node = fold->tree->nodes[instance->node].parent;

	for (; node && node != of->node && length < PATH_MOST; node = fold->tree->nodes[node].parent)
		path[length++] = node;
	if (node != of->node)
		return of;
	while (length--)
		of = step_into(of, path[length], 0, instance);
	return of;
}

/* What one is kept in that is in the instance `of`. */
static struct instance *find_owner(struct fold *fold, struct instance *of, const struct instance *instance)
{
	const uint32_t above = fold->tree->nodes[instance->node].parent;
	const bool runs_backward = fold->tree->nodes[above].beside != 0;
	const uint32_t around = place_around(fold, of);

	if (!runs_backward)
		return step_down(fold, of, instance);
	if (!is_engine(fold, of))
		of = into_backward(fold, of, instance);
	of = step_along(fold, of, placement_operator(fold->reader, reader_place(fold->reader, instance->place)->link),
		around, instance);
	return step_into(of, above, 0, instance);
}

long double fold_critical_least(const struct fold *fold)
{
	const long double value = fold->options.target->value, percent = fold->options.least_percent;

	return (value < 0 ? -value : value) * (percent == 0 ? 1 : percent < 0 ? 0 : percent) / 100;
}

bool fold_critical_take(struct fold *fold, struct instance *instance)
{
	const long double value = instance->value;
	const bool large = (value < 0 ? -value : value) >= fold_critical_least(fold);
	struct instance *of = instance->parent;

	if (value == 0 && !instance->kids && !instance->groups)
		return false;
	if (is_engine(fold, instance)) {
		instance_dissolve(into_backward(fold, of, instance), instance);
		return true;
	}
	instance_keep(find_owner(fold, of, instance), instance, large);
	return true;
}
