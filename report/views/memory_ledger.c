/* SPDX-License-Identifier: MIT
 *
 * Divides the capacity of each GPU, at the sample with the least free memory (memory --ledger).
 *
 *	capacity = PyTorch's allocator + each library + the program + pools + arrays
 *		 + CUDA contexts + others + free
 *
 * Free memory and the capacity are those of the sample. What a library or the program has allocated
 * is known from the records. The rest of what this process uses is its CUDA contexts, if NVML said
 * how much that is. The remainder belongs to other processes. So the rows always add up. If more is
 * recorded than the GPU has in use, the excess is a negative row.
 */
#include "report/analysis/allocation_sites.h"
#include "report/analysis/memory_groups.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/print/node_words.h"
#include "report/print/print.h"
#include "report/table/computed_row.h"
#include "report/table/view.h"
#include "report/text/paragraph.h"
#include "report/views/views.h"
#include <stdlib.h>
#include <string.h>

#define TORCH_LIBRARY "libc10_cuda"

/* Who allocated. LIBRARY is one entry for each library. */
enum ledger_owner {
	LEDGER_TORCH, /* PyTorch's caching allocator */
	LEDGER_LIBRARY,
	LEDGER_PROGRAM, /* the program's own file, or not known */
	LEDGER_POOL,
	LEDGER_ARRAY,
};

/* What one node allocated for one owner. */
struct ledger_part {
	uint64_t bytes;
	uint32_t owner, library; /* enum ledger_owner; LIBRARY: text of its name, else 0 */
	uint32_t node;
};

struct ledger_parts {
	struct ledger_part *parts; /* by owner and library, then by descending bytes */
	size_t count, room;
};

/* An owner's parts, as a range. */
struct ledger_owner_sum {
	uint64_t bytes;
	uint32_t first, count;
};

static bool has_prefix(struct string_view text, const char *prefix)
{
	const size_t length = strlen(prefix);

	return text.length >= length && !memcmp(text.bytes, prefix, length);
}

/* Whether the text is the name of the program's own file. */
static bool is_program(const struct process *process, struct string_view name)
{
	const struct trace_text path = reader_meta(process->reader, "exe");
	const char *slash = path.bytes ? memrchr(path.bytes, '/', path.length) : NULL;
	const size_t begin = slash ? (size_t)(slash + 1 - path.bytes) : 0;

	return path.bytes && path.length - begin == name.length &&
	       !memcmp(path.bytes + begin, name.bytes, name.length);
}

static void set_owner(struct process *process, const struct memory_site *site, uint32_t kind,
	struct ledger_part *part)
{
	const uint32_t library = memory_library(process, site->stack);
	const struct string_view name = string_table_get(process->texts, library);

	if (kind == TRACE_MEMORY_ARRAY)
		part->owner = LEDGER_ARRAY;
	else if (site->is_pool)
		part->owner = LEDGER_POOL;
	else if (library && has_prefix(name, TORCH_LIBRARY))
		part->owner = LEDGER_TORCH;
	else if (!library || is_program(process, name))
		part->owner = LEDGER_PROGRAM;
	else
		part->owner = LEDGER_LIBRARY;
	part->library = part->owner == LEDGER_LIBRARY ? library : 0;
}

static int by_ledger_order(const void *a, const void *b)
{
	const struct ledger_part *left = a, *right = b;

	if (left->owner != right->owner)
		return COMPARE(left->owner, right->owner);
	if (left->library != right->library)
		return COMPARE(left->library, right->library);
	if (left->node != right->node)
		return COMPARE(left->node, right->node);
	return 0;
}

/* Adds up the parts of one owner and node, which are neighbours. */
static void unite_parts(struct ledger_parts *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (kept && !by_ledger_order(&list->parts[kept - 1], &list->parts[i]))
			list->parts[kept - 1].bytes += list->parts[i].bytes;
		else
			list->parts[kept++] = list->parts[i];
	}
	list->count = kept;
}

/* Returns what each node held at the sample. */
static struct ledger_parts parts_of_sample(
	struct process *process, const struct device_sample *sample)
{
	const struct memory_owners *memory = process->profile->memory;
	uint32_t *same = nodes_in_any_step(process->profile->tree),
		 *paths = nodes_by_call_path(process->profile->tree);
	struct ledger_parts list = { .count = 0 };

	for (uint32_t i = 0; i < sample->held_count; i++) {
		const struct memory_site *site = &memory->sites[i];
		const struct memory_level *level = &memory->levels[site->level];
		const uint32_t node = same[site->node];
		struct ledger_part *part;

		if (level->device != sample->device || !memory_is_on_device(level->kind) ||
			!sample->held[i])
			continue;
		part = ARRAY_ADD(list.parts, list.room, list.count);
		*part = (struct ledger_part){ .bytes = sample->held[i],
			.node = paths[node] ? paths[node] : node };
		set_owner(process, site, level->kind, part);
	}
	free(same);
	free(paths);
	if (list.count)
		qsort(list.parts, list.count, sizeof *list.parts, by_ledger_order);
	unite_parts(&list);
	return list;
}

static uint64_t sum_of(const struct ledger_parts *list)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < list->count; i++)
		sum += list->parts[i].bytes;
	return sum;
}

/* ---- rows ---- */

struct ledger_rows {
	const struct options *options;
	struct process *process;
	struct rows *rows;
	const struct device_sample *sample;
	uint32_t root; /* row */
};

static uint32_t add_ledger_row(const struct ledger_rows *ledger, struct computed_row *computed,
	uint64_t bytes, uint32_t parent)
{
	computed_row_set_unsigned(computed, "device", ledger->sample->device);
	computed_row_set_unsigned(computed, "bytes", bytes);
	computed_row_set_share(computed, "share", bytes, ledger->sample->total_bytes);
	return computed_row_add(ledger->rows, computed, parent);
}

static void add_named(const struct ledger_rows *ledger, const char *kind, const char *name,
	uint64_t bytes, uint32_t parent)
{
	struct computed_row *computed = computed_row_new(ledger->process, 0, kind);

	computed_row_format_name(computed, "%s", name);
	add_ledger_row(ledger, computed, bytes, parent);
}

/* Adds the nodes of an owner below its row, the largest first. */
static void add_nodes(const struct ledger_rows *ledger, const struct ledger_part *parts,
	size_t count, uint32_t parent)
{
	const size_t first = ledger->rows->count;

	if (ledger->options->depth < 3) {
		ledger->rows->hidden_by_depth += count;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		const struct memory_group group = { .key = parts[i].node };
		const struct string_view name = memory_group_name(ledger->process, &group, BY_PATH);
		struct computed_row *computed = computed_row_new(
			ledger->process, parts[i].node, "path");

		computed_row_set_name(computed, name.bytes, name.length);
		add_ledger_row(ledger, computed, parts[i].bytes, parent);
	}
	rows_finish_level(ledger->options, ledger->process, ledger->rows, first, 2,
		view_top(ledger->options));
}

/* What PyTorch's allocator holds is tensors and the rest. */
static void add_torch_inside(const struct ledger_rows *ledger, uint64_t bytes, uint32_t parent)
{
	const uint64_t tensors = min_u64(ledger->sample->tensors, bytes);

	if (!ledger->sample->reserved || ledger->options->depth < 3)
		return;
	add_named(ledger, "tensors", "tensors", tensors, parent);
	add_named(ledger, "unallocated", "in no tensor", bytes - tensors, parent);
}

static void add_owner(const struct ledger_rows *ledger, const struct ledger_part *parts,
	const struct ledger_owner_sum *sum)
{
	static const char *const kinds[] = { "allocator", "library", "program", "pool", "array" };
	static const char *const names[] = { "PyTorch's caching allocator", NULL,
		"allocated by the program", "allocated from CUDA's memory pools", "CUDA arrays" };
	const struct ledger_part *first = &parts[sum->first];
	struct computed_row *computed = computed_row_new(ledger->process, 0, kinds[first->owner]);
	const struct string_view library = string_table_get(ledger->process->texts, first->library);
	uint32_t row;

	if (first->owner == LEDGER_LIBRARY)
		computed_row_set_name(computed, library.bytes, library.length);
	else
		computed_row_format_name(computed, "%s", names[first->owner]);
	row = add_ledger_row(ledger, computed, sum->bytes, ledger->root);
	if (first->owner == LEDGER_TORCH)
		add_torch_inside(ledger, sum->bytes, row);
	else
		add_nodes(ledger, first, sum->count, row);
}

static int by_sum_bytes(const void *a, const void *b)
{
	const struct ledger_owner_sum *left = a, *right = b;

	return left->bytes != right->bytes ? COMPARE(right->bytes, left->bytes)
					   : COMPARE(left->first, right->first);
}

/* Adds a row for each owner, the largest first. */
static void add_owners(const struct ledger_rows *ledger, const struct ledger_parts *list)
{
	struct ledger_owner_sum *sums = xcalloc((list->count + 1) * sizeof *sums);
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct ledger_part *part = &list->parts[i];

		if (!i || part->owner != part[-1].owner || part->library != part[-1].library)
			sums[count++].first = (uint32_t)i;
		sums[count - 1].bytes += part->bytes;
		sums[count - 1].count++;
	}
	qsort(sums, count, sizeof *sums, by_sum_bytes);
	for (size_t i = 0; i < count; i++)
		add_owner(ledger, list->parts, &sums[i]);
	free(sums);
}

/* Adds what the records do not have: `rest` bytes that are in use. */
static void add_rest(const struct ledger_rows *ledger, uint64_t rest)
{
	const struct device_sample *sample = ledger->sample;
	const uint64_t context = min_u64(sample->context_bytes, rest);

	if (!sample->context_bytes) {
		add_named(ledger, "context_and_others", "CUDA contexts, and other processes", rest,
			ledger->root);
		return;
	}
	add_named(ledger, "context", "CUDA contexts of this process", context, ledger->root);
	add_named(ledger, "others", "other processes", rest - context, ledger->root);
}

static void add_excess(const struct ledger_rows *ledger, uint64_t excess)
{
	struct computed_row *computed = computed_row_new(ledger->process, 0, "excess");

	computed_row_format_name(computed, "recorded, but free or not in use");
	computed_row_set_unsigned(computed, "device", ledger->sample->device);
	computed_row_set_integer(computed, "bytes", -(int64_t)excess);
	computed_row_add(ledger->rows, computed, ledger->root);
}

static void add_ledger(const struct options *options, struct process *process, struct rows *rows,
	const struct device_sample *sample)
{
	struct ledger_rows ledger = { options, process, rows, sample, NO_ROW };
	struct computed_row *computed = computed_row_new(process, 0, "ledger");
	const uint64_t used = sample->total_bytes -
			      min_u64(sample->free_bytes, sample->total_bytes);
	struct ledger_parts list;
	uint64_t held;

	computed_row_format_name(computed, "GPU %u", sample->device);
	computed_row_set_unsigned(computed, "at_ns", sample->at_ns);
	ledger.root = add_ledger_row(&ledger, computed, sample->total_bytes, NO_ROW);
	if (options->depth < 2)
		return;
	list = parts_of_sample(process, sample);
	held = sum_of(&list);
	add_owners(&ledger, &list);
	if (held <= used)
		add_rest(&ledger, used - held);
	else
		add_excess(&ledger, held - used);
	add_named(&ledger, "free", "free", sample->total_bytes - used, ledger.root);
	free(list.parts);
}

void arrange_memory_ledger(
	const struct options *options, struct process *process, struct rows *rows)
{
	const struct memory_owners *memory = process->profile->memory;

	for (uint32_t i = 0; i < memory->fullest_count; i++)
		if (options->device < 0 || memory->fullest[i].device == (uint32_t)options->device)
			add_ledger(options, process, rows, &memory->fullest[i]);
}

/* ---- sentences ---- */

static void put_sample_sentence(const struct device_sample *sample, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	paragraph_add(&paragraph, "GPU %u when it was fullest, of %llu sample%s: after ",
		sample->device, (unsigned long long)sample->samples,
		sample->samples == 1 ? "" : "s");
	paragraph_value(&paragraph, UNIT_TIME, sample->at_ns);
	if (sample->reason == TRACE_SAMPLE_FIRST)
		paragraph_add(&paragraph, ", at the first allocation");
	else if (sample->reason == TRACE_SAMPLE_FAILED)
		paragraph_add(&paragraph, ", when an allocation failed");
	else if (sample->reason == TRACE_SAMPLE_QUERY)
		paragraph_add(&paragraph, ", when the program called cudaMemGetInfo");
	if (sample->context_bytes && sample->context_at_ns != sample->at_ns) {
		paragraph_add(&paragraph, "; the CUDA contexts as of ");
		paragraph_value(&paragraph, UNIT_TIME, sample->context_at_ns);
	}
	paragraph_print(&paragraph, "ledger");
}

/* Says what a row cannot tell. */
static void put_ledger_limits(const struct process *process, const struct device_sample *sample,
	const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	const struct memory_owners *memory = process->profile->memory;
	bool pools = false, managed = false;

	for (uint32_t i = 0; i < memory->site_count; i++)
		pools |= memory->sites[i].is_pool;
	for (uint32_t i = 0; i < memory->level_count; i++)
		managed |= memory->levels[i].kind == TRACE_MEMORY_MANAGED;
	if (!sample->context_bytes)
		paragraph_add(&paragraph,
			"NVML was not loaded by the program, so its CUDA contexts "
			"are one row with other processes. ");
	if (pools)
		paragraph_add(&paragraph, "Of memory pools (cudaMallocAsync) only the bytes "
					  "requested are known; what "
					  "a pool keeps beyond them counts as CUDA contexts. ");
	if (managed)
		paragraph_add(&paragraph, "Managed memory is on the GPU or on the host; what is on "
					  "the GPU counts as CUDA contexts. ");
	if (!sample->context_bytes || pools || managed)
		paragraph_print(&paragraph, "");
}

void memory_ledger_header(const struct report *report, const struct style *style)
{
	for (size_t i = 0; i < report->processes->shown; i++) {
		const struct process *process = &report->processes->all[i];
		const struct memory_owners *memory = process->profile->memory;

		for (uint32_t j = 0; j < memory->fullest_count; j++) {
			put_sample_sentence(&memory->fullest[j], style);
			put_ledger_limits(process, &memory->fullest[j], style);
		}
	}
	output_char(style->out, '\n');
}

void memory_ledger_explain_empty(const struct report *report, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	(void)report;
	paragraph_add(&paragraph,
		"The trace has no sample of a GPU's memory. One is taken after the first "
		"allocation "
		"of device memory by the CUDA runtime, after each that fails, at each "
		"cudaMemGetInfo of the program, and once a second if the program uses NVML.");
	paragraph_print(&paragraph, "");
}
