/* SPDX-License-Identifier: MIT
 *
 * Says what to do about a run that is bound by kernels: by the categories of its GPU time, and with
 * which kernels to start. Those have the most GPU time; it says where they are launched, and how
 * near they come to the GPU's peak where a model knows that.
 */
#include "report/analysis/group_by.h"
#include "report/base/alloc.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/table/computed_row.h"
#include "report/trace/op_inputs.h"
#include "report/views/views.h"
#include <stdlib.h>
#include <string.h>

#define KERNELS_NAMED 3u
/* Percent of all GPU time: a kernel with less is not worth naming. */
#define KERNEL_MIN_PERCENT 2u

/* A kernel, and how near its operators come to the limit of the GPU. */
struct named_kernel {
	uint32_t name, launcher; /* launcher: the node with most of its time */
	uint64_t ns, launcher_ns;
	uint64_t modelled_ns, memory_ns; /* of its operators, and of those that memory limits */
	double reached_ns;               /* sum of time x share of the limit that was reached */
};

static void add_kernel_node(struct named_kernel *kernel, const struct node *node)
{
	kernel->name = node->name;
	kernel->ns += node->gpu->self_ns;
	if (node->gpu->self_ns > kernel->launcher_ns) {
		kernel->launcher_ns = node->gpu->self_ns;
		kernel->launcher = node->parent;
	}
}

/* Fills the kernels with the most time, except those that communicate. Returns their number. */
static unsigned largest_kernels(
	const struct diagnosis *diagnosis, struct named_kernel largest[KERNELS_NAMED])
{
	const struct tree *tree = diagnosis->profile->tree;
	struct named_kernel *by_name = NULL;
	size_t room = 0;
	unsigned count = 0;

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];

		if (node->kind != NODE_KERNEL || node->captured || !node->gpu ||
			diagnose_is_communication(diagnosis, node->name))
			continue;
		ARRAY_GROW(by_name, room, (size_t)node->name + 1);
		add_kernel_node(&by_name[node->name], node);
	}
	while (count < KERNELS_NAMED) {
		size_t most = 0;

		for (size_t i = 1; i < room; i++)
			most = by_name[i].ns > by_name[most].ns ? i : most;
		if (!room || !run_bound_is_percent(by_name[most].ns,
				     diagnosis->profile->totals.gpu_sum_ns, KERNEL_MIN_PERCENT))
			break;
		largest[count++] = by_name[most];
		by_name[most].ns = 0;
	}
	free(by_name);
	return count;
}

/* GPU time of operators whose elements are known, and of those with 16 bits or fewer. Without any:
 * of the named kernels, those whose names say so. */
struct precision {
	uint64_t known_ns, low_ns;      /* low: 16 bits or fewer */
	uint64_t kernels_ns, narrow_ns; /* of named kernels; narrow: 8 bits or fewer */
};

static void add_precision(struct precision *precision, const struct row *row)
{
	const struct string_view type = computed_row_text(row, "element_type");
	const enum element_type element = element_find(type.bytes, type.length);
	const uint64_t ns = computed_row_number(row, "gpu_total_ns");

	if (element == ELEMENT_UNKNOWN)
		return;
	precision->known_ns += ns;
	precision->low_ns += element_bytes(element) <= 2 ? ns : 0;
}

static bool has_any(struct string_view name, const char *const *words)
{
	for (; *words; words++)
		if (memmem(name.bytes, name.length, *words, strlen(*words)))
			return true;
	return false;
}

/* Adds what the names of kernels say of their elements. */
static void add_names(const struct diagnosis *diagnosis, const struct named_kernel *kernels,
	unsigned count, struct precision *precision)
{
	static const char *const narrow[] = { "fp8", "fp4", "int8", "int4", "e4m3", "e5m2", NULL },
				 *const low[] = { "bf16", "fp16", "f16", "half", NULL };
	const bool by_name = !precision->known_ns;

	for (unsigned k = 0; k < count; k++) {
		const struct string_view name = string_table_get(
			diagnosis->process->texts, kernels[k].name);
		const bool is_narrow = has_any(name, narrow);

		precision->kernels_ns += kernels[k].ns;
		precision->narrow_ns += is_narrow ? kernels[k].ns : 0;
		if (!by_name)
			continue;
		precision->known_ns += kernels[k].ns;
		precision->low_ns += is_narrow || has_any(name, low) ? kernels[k].ns : 0;
	}
}

/* Returns the advice on a lower precision than most products have. */
static const char *precision_advice(const struct precision *precision)
{
	if (run_bound_is_percent(precision->narrow_ns, precision->kernels_ns, 50))
		return "";
	return run_bound_is_percent(precision->low_ns, precision->known_ns, 50)
		       ? "a lower precision (fp8, quantised weights), "
		       : "a lower precision (bf16, fp8, quantised weights), ";
}

/* Adds how near operators come to the GPU's limit, and the precision of operators, from the rows of
 * the view `roofline`. */
static void add_limits(const struct diagnosis *diagnosis, struct named_kernel *kernels,
	unsigned count, struct precision *precision)
{
	const struct options options = diagnose_row_options(
		diagnosis->options, "roofline", UINT32_MAX);
	struct processes only = { .all = diagnosis->process, .count = 1, .shown = 1 };
	struct rows rows = { .count = 0 };

	arrange_roofline(&options, &only, &rows);
	for (size_t i = 0; i < rows.count; i++) {
		const struct row *row = &rows.rows[i];
		const struct string_view name = computed_row_text(row, "kernel");
		const uint64_t ns = computed_row_number(row, "gpu_total_ns");

		if (!computed_row_is(row, "kind", "op") || !computed_row_text(row, "roof").length)
			continue;
		add_precision(precision, row);
		for (unsigned k = 0; k < count; k++) {
			const struct string_view own = string_table_get(
				diagnosis->process->texts, kernels[k].name);

			if (own.length != name.length ||
				memcmp(own.bytes, name.bytes, own.length) != 0)
				continue;
			kernels[k].modelled_ns += ns;
			kernels[k].memory_ns += computed_row_is(row, "roof", "memory") ? ns : 0;
			kernels[k].reached_ns += (double)ns * computed_row_real(row, "roof_share");
		}
	}
	free(rows.rows);
}

/* Appends `NAME 7.2 % in OPERATOR (modelled: 62 % of the GPU's peak rate)`. */
static void add_kernel_words(struct diagnosis *diagnosis, const struct named_kernel *kernel,
	struct finding *text, bool first)
{
	const struct tree *tree = diagnosis->profile->tree;
	size_t used = strlen(text->next);

	finding_set_text(text->next + used, sizeof text->next - used, "%s%s %s", first ? "" : "; ",
		diagnose_name(diagnosis, kernel->name),
		diagnose_share(diagnosis, kernel->ns, diagnosis->profile->totals.gpu_sum_ns));
	used = strlen(text->next);
	if (kernel->launcher && tree->nodes[kernel->launcher].kind != NODE_UNATTRIBUTED &&
		tree->nodes[kernel->launcher].kind != NODE_GRAPH)
		finding_set_text(text->next + used, sizeof text->next - used, " in %s",
			diagnose_node(diagnosis, kernel->launcher));
	used = strlen(text->next);
	/* Without a model for most of its time, nothing is said. */
	if (run_bound_is_percent(kernel->modelled_ns, kernel->ns, 50))
		finding_set_text(text->next + used, sizeof text->next - used,
			" (modelled: %.0f %% of the %s)",
			100 * kernel->reached_ns / (double)kernel->modelled_ns,
			2 * kernel->memory_ns > kernel->modelled_ns ? "memory bandwidth"
								    : "peak rate");
}

/* Categories of work of one kind. */
struct work_kind {
	const char *categories[8];
	uint64_t ns;
};

static void add_category(struct work_kind *kind, struct string_view name, uint64_t ns)
{
	for (size_t i = 0; kind->categories[i]; i++)
		if (name.length == strlen(kind->categories[i]) &&
			!memcmp(name.bytes, kind->categories[i], name.length))
			kind->ns += ns;
}

#define ACTION_MIN_PERCENT 30u /* of all GPU time: an action for less is no answer to a verdict */

/* Sets what to do by what most GPU time consists of: products, which compute much for each byte, or
 * work that passes over memory once for each operation. */
static void advise_by_category(
	struct diagnosis *diagnosis, const struct precision *precision, struct finding *text)
{
	struct work_kind products = { { "GEMM", "convolution", "attention" }, 0 }, passes = {
		{ "elementwise", "copy", "norm", "activation", "softmax", "reduction", "dropout" },
		0
	};
	const uint64_t whole = diagnosis->profile->totals.gpu_sum_ns;
	const bool pytorch = diagnose_traits(diagnosis).uses_pytorch;
	const char *compile = diagnose_compile_advice(diagnosis);
	struct tree *flat = group_by_categories(diagnosis->process, DEMANGLE_SHORT);

	for (uint32_t id = flat->nodes[0].first_child; id; id = flat->nodes[id].next) {
		const struct string_view name = string_table_get(
			diagnosis->process->texts, flat->nodes[id].name);
		const uint64_t ns = flat->nodes[id].gpu ? flat->nodes[id].gpu->total_ns : 0;

		add_category(&products, name, ns);
		add_category(&passes, name, ns);
	}
	tree_free(flat);
	if (passes.ns > products.ns && run_bound_is_percent(passes.ns, whole, ACTION_MIN_PERCENT))
		SET_TEXT(text->next,
			"Fuse elementwise operations, copies, norms and reductions (%s of all GPU "
			"time)%s%s%s, so that they pass over memory once. ",
			diagnose_share(diagnosis, passes.ns, whole), pytorch ? " with " : "",
			pytorch ? compile : "", pytorch ? " or fused kernels" : "");
	else if (run_bound_is_percent(products.ns, whole, ACTION_MIN_PERCENT))
		SET_TEXT(text->next,
			"Make matrix products, convolutions and attention (%s of all GPU time) "
			"cheaper: %sa larger batch, other tiles or another library. ",
			diagnose_share(diagnosis, products.ns, whole), precision_advice(precision));
}

void bound_kernels_advise(struct diagnosis *diagnosis, struct finding *text)
{
	struct named_kernel kernels[KERNELS_NAMED];
	const unsigned count = largest_kernels(diagnosis, kernels);
	struct precision precision = { 0 };

	if (!count)
		return;
	add_limits(diagnosis, kernels, count, &precision);
	add_names(diagnosis, kernels, count, &precision);
	advise_by_category(diagnosis, &precision, text);
	strncat(text->next, "The largest kernels, by share of all GPU time: ",
		sizeof text->next - strlen(text->next) - 1);
	for (unsigned k = 0; k < count; k++)
		add_kernel_words(diagnosis, &kernels[k], text, k == 0);
	strncat(text->next, ".", sizeof text->next - strlen(text->next) - 1);
}
