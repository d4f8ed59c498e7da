/* SPDX-License-Identifier: MIT */
#include "report/diagnose/diagnosis_internal.h"
#include "report/base/compare.h"
#include "report/base/escape.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool diagnose_is_share(uint64_t part, uint64_t whole, uint64_t per_mille)
{
	return whole && (long double)part * 1000 >= (long double)whole * per_mille;
}

static char *next_text_buffer(struct diagnosis *diagnosis)
{
	return diagnosis->text_buffers[diagnosis->next_buffer++ % DIAGNOSE_TEXT_BUFFERS];
}

static const char *format_number(struct diagnosis *diagnosis, enum unit unit, uint64_t value)
{
	char *text = next_text_buffer(diagnosis);

	format_with_unit(text, unit, clamp_to_i64(value), diagnosis->options->style.iec,
		diagnosis->options->style.ascii);
	return text;
}

const char *diagnose_time(struct diagnosis *diagnosis, uint64_t ns)
{
	return format_number(diagnosis, UNIT_TIME, ns);
}

const char *diagnose_bytes(struct diagnosis *diagnosis, uint64_t bytes)
{
	return format_number(diagnosis, UNIT_BYTES, bytes);
}

const char *diagnose_rate(struct diagnosis *diagnosis, uint64_t bytes, uint64_t ns)
{
	return format_number(diagnosis, UNIT_BYTE_RATE,
		ns ? clamp_to_u64((long double)bytes * 1e9L / (long double)ns) : 0);
}

const char *diagnose_count(struct diagnosis *diagnosis, uint64_t count)
{
	return format_number(diagnosis, UNIT_COUNT, count);
}

const char *diagnose_plural(struct diagnosis *diagnosis, uint64_t count, const char *what)
{
	const char *plural = what[strlen(what) - 1] == 'h' ? "es" : "s";
	char *text = next_text_buffer(diagnosis), number[FORMAT_NUMBER_BYTES];

	format_with_unit(
		number, UNIT_COUNT, clamp_to_i64(count), false, diagnosis->options->style.ascii);
	snprintf(text, sizeof diagnosis->text_buffers[0], "%s %s%s", number, what,
		count == 1 ? "" : plural);
	return text;
}

const char *diagnose_share(struct diagnosis *diagnosis, uint64_t part, uint64_t whole)
{
	char *text = next_text_buffer(diagnosis);

	format_percent(text, clamp_to_i64(part), clamp_to_i64(whole));
	return text;
}

#define NAME_COLUMNS 64u
#define NAME_BYTES_READ 2000u

const char *diagnose_escaped(struct diagnosis *diagnosis, const char *bytes, size_t length)
{
	char *text = next_text_buffer(diagnosis), shown[6 * NAME_BYTES_READ + 1];
	size_t used;

	if (length > NAME_BYTES_READ)
		length = NAME_BYTES_READ;
	escape_text(shown, sizeof shown, bytes, length, diagnosis->options->style.ascii);
	used = escaped_shorten(shown, sizeof shown, NAME_COLUMNS, diagnosis->options->style.ascii);
	if (used >= sizeof diagnosis->text_buffers[0]) /* many characters without width */
		for (used = sizeof diagnosis->text_buffers[0] - 1;
			used && ((unsigned char)shown[used] & 0xc0) == 0x80; used--)
			continue;
	memcpy(text, shown, used);
	text[used] = '\0';
	return text;
}

const char *diagnose_name(struct diagnosis *diagnosis, uint32_t text)
{
	const struct string_view name = string_table_get(diagnosis->process->texts, text);

	return name.length ? diagnose_escaped(diagnosis, name.bytes, name.length) : "(no name)";
}

const char *diagnose_node(struct diagnosis *diagnosis, uint32_t node)
{
	const struct node *of = &diagnosis->profile->tree->nodes[node];
	const struct string_view name = string_table_get(diagnosis->process->texts, of->name),
				 class = string_table_get(diagnosis->process->texts, of->class);
	char text[NAME_COLUMNS];

	if (!of->class || name.length != 1 || name.bytes[0] != '*')
		return diagnose_name(diagnosis, of->name);
	SET_TEXT(text, "* (%.*s)", (int)class.length, class.bytes);
	return diagnose_escaped(diagnosis, text, strlen(text));
}

void finding_set_text(char *text, size_t room, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(text, room, format, list);
	va_end(list);
}

void finding_set_found(struct finding *finding, enum finding_confidence confidence)
{
	finding->state = FINDING_FOUND;
	finding->confidence = confidence;
}

void finding_set_impact(struct finding *finding, uint32_t node, uint64_t count, uint64_t impact_ns)
{
	finding->node = node;
	finding->count = count;
	finding->impact_ns = impact_ns;
	finding->upper_bound = true;
}

bool finding_set_class(struct diagnosis *diagnosis, struct finding *finding, enum bound class,
	uint64_t span_ns, uint64_t per_mille)
{
	const struct run_bound *bound = diagnose_bound(diagnosis);
	const uint64_t ns = run_bound_ns(bound, class),
		       least = diagnosis->reports_small ? min_u64(LIMIT_MINOR, per_mille)
							: per_mille;
	const bool in_steps = bound->steps && diagnose_is_share(ns, bound->whole_ns, least);
	const uint64_t part = in_steps ? ns : span_ns,
		       whole = in_steps ? bound->whole_ns : diagnosis->facts.span_ns;

	if (!diagnose_is_share(part, whole, least))
		return false;
	finding->impact_ns = part;
	finding->whole_ns = whole;
	finding->whole_name = in_steps ? run_bound_time_name(bound) : "the GPU span";
	finding->upper_bound = true;
	return true;
}

void finding_set_small(struct finding *finding, uint64_t ns, uint64_t per_mille, uint64_t whole_ns,
	const char *whole_name)
{
	if (!diagnose_is_share(ns, whole_ns, LIMIT_SHOWN) ||
		diagnose_is_share(ns, whole_ns, per_mille))
		return;
	finding->impact_ns = ns;
	finding->whole_ns = whole_ns;
	finding->whole_name = whole_name;
}

void finding_set_unchecked(struct finding *finding, const char *what)
{
	finding->state = FINDING_UNCHECKED;
	SET_TEXT(finding->reason, "%s", what);
}

uint64_t diagnose_short_launch_gaps(const struct diagnosis *diagnosis, uint64_t *gaps)
{
	const struct diagnose_facts *facts = &diagnosis->facts;

	/* A gap may have both parts. */
	*gaps = max_u64(facts->cause_gaps[GAP_LAUNCH], facts->cause_gaps[GAP_LATENCY]);
	*gaps -= min_u64(*gaps, facts->launch_long.count + facts->launch_long_before_steps.count);
	return facts->cause_ns[GAP_LAUNCH] + facts->cause_ns[GAP_LATENCY] -
	       facts->launch_long.total_ns - facts->launch_long_before_steps.total_ns;
}

struct options diagnose_row_options(const struct options *options, const char *view, uint32_t top)
{
	struct options all = *options;

	all.view = view_find(view);
	all.top = top;
	all.depth = UINT32_MAX;
	all.min_percent = 0;
	all.sort = NULL;
	return all;
}

bool diagnose_hides_work(const struct diagnosis *diagnosis)
{
	return diagnose_is_share(diagnosis->profile->totals.gpu_unknown_ns,
		diagnosis->facts.span_ns, LIMIT_UNKNOWN_MAX);
}

/* Returns true if the name is one of an operator or a kernel that works on a list of tensors. */
static bool is_foreach(const struct diagnosis *diagnosis, uint32_t text)
{
	static const char *const parts[] = { "aten::_foreach_", "aten::_fused_adam",
		"aten::_fused_sgd", "aten::_fused_adagrad", "multi_tensor_apply" };
	const struct string_view name = string_table_get(diagnosis->process->texts, text);

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (memmem(name.bytes, name.length, parts[i], strlen(parts[i])))
			return true;
	return false;
}

static bool is_in_optimizer(const struct tree *tree, uint32_t id)
{
	for (; id; id = tree->nodes[id].parent)
		if (tree->nodes[id].kind == NODE_OPTIMIZER)
			return true;
	return false;
}

static bool has_foreach_optimizer(const struct diagnosis *diagnosis)
{
	const struct tree *tree = diagnosis->profile->tree;
	bool has_optimizer = false, in_optimizer = false, anywhere = false;

	for (uint32_t id = 1; id < tree->count; id++) {
		has_optimizer |= tree->nodes[id].kind == NODE_OPTIMIZER;
		if (!is_foreach(diagnosis, tree->nodes[id].name))
			continue;
		anywhere = true;
		in_optimizer |= is_in_optimizer(tree, id);
	}
	return has_optimizer ? in_optimizer : anywhere;
}

/* Returns true for the ranges that PyTorch makes around calls of compiled functions. */
static bool is_compiled(const struct diagnosis *diagnosis, uint32_t text)
{
	const struct string_view name = string_table_get(diagnosis->process->texts, text);

	return category_matches("Torch-Compiled Region*", name.bytes, name.length) ||
	       category_matches("CompiledFunction*", name.bytes, name.length);
}

static struct program_traits traits_of_tree(const struct diagnosis *diagnosis)
{
	const struct tree *tree = diagnosis->profile->tree;
	const struct trace_text stacks = process_meta(diagnosis->process, "source.python_stacks"),
				hip = process_meta(diagnosis->process, "source.roctracer");
	struct program_traits traits = { .has_python_stacks = stacks.known && stacks.length >= 2 &&
							      !memcmp(stacks.bytes, "on", 2),
		.is_hip = hip.known,
		.launches_graphs = diagnosis->profile->counts.graph_launches > 0 };

	for (uint32_t id = 1; id < tree->count; id++) {
		const enum node_kind kind = tree->nodes[id].kind;

		traits.uses_pytorch |= kind == NODE_OP || kind == NODE_MODULE;
		traits.trains |= kind == NODE_OPTIMIZER || kind == NODE_BACKWARD;
		traits.has_ranges |= kind == NODE_RANGE;
		traits.compiles |= is_compiled(diagnosis, tree->nodes[id].name);
	}
	traits.has_foreach_optimizer = traits.trains && has_foreach_optimizer(diagnosis);
	return traits;
}

struct program_traits diagnose_traits(struct diagnosis *diagnosis)
{
	if (!diagnosis->has_traits)
		diagnosis->traits = traits_of_tree(diagnosis);
	diagnosis->has_traits = true;
	return diagnosis->traits;
}

/* Thousandths of all launches: with fewer outside of CUDA graphs, gaps are those between graphs. */
#define OUTSIDE_GRAPHS_MIN 100u

const char *diagnose_graphs_advice(struct diagnosis *diagnosis)
{
	const uint64_t alone = diagnosis->facts.own_launches,
		       graphs = diagnosis->profile->counts.graph_launches;
	char *text = next_text_buffer(diagnosis);

	if (!graphs)
		return "CUDA graphs";
	if (diagnose_is_share(alone, alone + graphs, OUTSIDE_GRAPHS_MIN))
		finding_set_text(text, sizeof diagnosis->text_buffers[0],
			"CUDA graphs also for the %s that %s still launched one by one",
			diagnose_plural(diagnosis, alone, "kernel"), alone == 1 ? "is" : "are");
	else
		finding_set_text(text, sizeof diagnosis->text_buffers[0],
			"fewer, larger CUDA graphs (now %s)",
			diagnose_plural(diagnosis, graphs, "launch"));
	return text;
}

const char *diagnose_compile_advice(struct diagnosis *diagnosis)
{
	return diagnose_traits(diagnosis).compiles
		       ? "torch.compile for what runs outside of compiled functions"
		       : "torch.compile";
}
