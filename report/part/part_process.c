/* SPDX-License-Identifier: MIT */
#include "report/part/part_process.h"
#include "report/analysis/ranks/collective_nodes.h"
#include "report/base/alloc.h"
#include "report/base/text_builder.h"
#include "report/analysis/step_stats.h"
#include "report/diagnose/diagnose.h"
#include "report/part/part_paths.h"
#include "report/print/print.h"
#include "report/table/computed_row.h"
#include "report/views/views.h"
#include <stdlib.h>
#include <string.h>

static struct part_file *begin_row(const struct part_process *part, enum part_table table)
{
	struct part_file *file = &part->files[table];

	part_row_begin(file, part->trace, part->input->process.rank);
	return file;
}

/* ---- processes ---- */

static void put_meta(const struct part_process *part, struct part_file *file, const char *key)
{
	const struct trace_text text = part->is_open ? process_meta(&part->input->process, key)
						     : (struct trace_text){ .length = 0 };

	part_text(file, text.length ? text.bytes : "", text.length);
}

/* Writes the name of the first GPU that the trace describes. */
static void put_device(const struct part_process *part, struct part_file *file)
{
	const struct process *process = &part->input->process;
	struct trace_text name = { .bytes = "", .length = 0 };

	for (uint32_t i = 0; part->is_open && i < TIMELINE_DEVICES && !name.length; i++) {
		const struct trace_device *device = process_device(process, i);

		if (device)
			name = reader_name(process->reader, device->name);
	}
	part_text(file, name.length ? name.bytes : "", name.length);
}

static void put_flags(const struct rank_input *input, struct part_file *file)
{
	part_flag(file, input->ended);
	part_flag(file, input->process.complete);
	part_flag(file, input->process.simulated);
	part_flag(file, input->has_gpu);
	part_flag(file, input->collectives.ranges);
	part_flag(file, input->collectives.waits_in_call);
}

static void put_totals(const struct rank_input *input, struct part_file *file)
{
	const struct profile_totals *totals = &input->totals;

	part_integer(file, (int64_t)input->process.start_unix_ns);
	part_integer(file, (int64_t)input->process.wall_ns);
	part_integer(file, (int64_t)totals->cpu_self_ns);
	part_integer(file, input->gpu_count);
	part_integer(file, (int64_t)totals->gpu_sum_ns);
	part_integer(file, (int64_t)totals->gpu_busy_ns);
	part_integer(file, (int64_t)totals->gpu_computation_ns);
	part_integer(file, (int64_t)totals->gpu_communication_ns);
	part_integer(file, (int64_t)totals->gpu_exposed_communication_ns);
	part_integer(file, (int64_t)totals->gpu_copy_ns);
	part_integer(file, (int64_t)input->gpu_last_unix_ns);
	part_integer(file, totals->reserved_peak);
	part_integer(file, totals->allocated_peak);
}

static void put_process(const struct part_process *part)
{
	const struct rank_input *input = part->input;
	const struct process *process = &input->process;
	struct part_file *file = begin_row(part, PART_PROCESSES);

	part_integer(file, (int64_t)input->run_id);
	part_integer(file, process->pid);
	put_meta(part, file, "host");
	part_string(file, part->file);
	put_meta(part, file, "command");
	part_string(file, rank_input_status_name(input->status));
	part_string(file, input->why && part->options->redact
				  ? rank_input_status_text(input->status)
				  : input->why);
	put_flags(input, file);
	part_integer(file, (int64_t)input->bytes);
	part_integer(file, (int64_t)part->content);
	put_totals(input, file);
	part_integer(file, (int64_t)process->events);
	part_integer(file, (int64_t)process->integrity.lost_events);
	part_integer(file, (int64_t)process->integrity.truncated_streams);
	part_integer(file, (int64_t)process->integrity.dropped);
	part_integer(file, part->is_open && process->steps ? (int64_t)process->steps->count : 0);
	part_integer(file, (int64_t)input->collectives.pairs);
	part_integer(file, (int64_t)input->collectives.untimed);
	part_integer(file, input->world_size);
	part_flag(file, input->lacks_events);
	part_integer(file, (int64_t)input->requests.count);
	part_flag(file, input->requests.has_more_pairs);
	put_meta(part, file, "version.torch");
	put_meta(part, file, "version.cuda_runtime");
	put_device(part, file);
	part_row_end(file);
}

/* ---- communicators and collectives ---- */

/* Writes a number that may be UINT32_MAX: unknown, and -1 in the table. */
static void put_number(struct part_file *file, uint32_t number)
{
	part_integer(file, number == UINT32_MAX ? -1 : (int64_t)number);
}

static void put_communicators(const struct part_process *part)
{
	const struct rank_input *input = part->input;

	for (size_t i = 0; i < input->collectives.communicator_count; i++) {
		const struct communicator *comm = &input->collectives.communicators[i];
		struct part_file *file = begin_row(part, PART_COMMUNICATORS);

		part_integer(file, (int64_t)i);
		put_number(file, comm->device);
		put_number(file, comm->stream);
		part_integer(file, (int64_t)comm->key);
		part_text(file, comm->group.length ? comm->group.bytes : "", comm->group.length);
		part_flag(file, comm->group.known);
		part_integer(file, comm->low);
		part_integer(file, comm->high);
		part_integer(file, comm->sequence);
		part_integer(file, (int64_t)comm->count);
		part_integer(file, (int64_t)(input->end ? input->end->requested[i] : comm->count));
		part_row_end(file);
	}
}

/* Writes the path of a node that launched collectives, once. */
static void put_site(
	const struct part_process *part, const struct tree *tree, uint32_t node, uint64_t site)
{
	struct part_file *file = begin_row(part, PART_SITES);
	struct text_builder path = { .text = NULL };

	part_path_add(&path, &part->input->process, tree, node);
	part_integer(file, (int64_t)site);
	part_text(file, path.text ? path.text : "", path.used);
	part_row_end(file);
	free(path.text);
}

static void add_leaf(
	void *context, uint32_t node, bool is_work, uint64_t at_ns, uint64_t duration_ns)
{
	(void)duration_ns;
	if (is_work)
		collective_nodes_add(context, node, at_ns);
}

/* Sets the site of each collective by the node that launched it (0: unknown), and writes the paths
 * of the sites. */
static void set_sites(const struct part_process *part, const struct tree *tree,
	const uint32_t *launched_at, uint64_t *sites)
{
	uint64_t *hashes = part_path_hashes(&part->input->process, tree, false);
	bool *written = xcalloc(tree->count);

	for (size_t i = 0; i < part->input->collectives.count; i++) {
		const uint32_t node = launched_at[i];

		sites[i] = hashes[node];
		if (node && !written[node])
			put_site(part, tree, node, sites[i]);
		written[node] = true;
	}
	free(written);
	free(hashes);
}

/* Finds the nodes that launched the collectives without a pass over the trace. Returns false if the
 * nodes of the trace do not say it: for launches in no range, in ranges whose names are not in the
 * table of names, or by CUDA graphs. */
static bool find_launch_nodes(
	const struct part_process *part, const uint32_t *nodes, uint32_t *launched_at)
{
	const struct collectives *collectives = &part->input->collectives;
	const struct process *process = &part->input->process;

	for (size_t i = 0; i < collectives->count; i++) {
		const struct collective *one = &collectives->all[i];

		launched_at[i] = 0;
		if (one->launched_ns == UINT64_MAX ||
			!categories_is_communication(
				process->categories, reader_name(process->reader, one->kernel)))
			continue;
		if (!one->launch_node || nodes[one->launch_node] == NODE_UNRESOLVED)
			return false;
		launched_at[i] = nodes[one->launch_node];
	}
	return true;
}

/* Sets the sites by the nodes of the trace. Returns false if they do not say all. */
static bool find_sites_by_nodes(
	const struct part_process *part, uint32_t *launched_at, uint64_t *sites)
{
	const struct process *process = &part->input->process;
	struct tree *tree = tree_new();
	struct node_names *names = node_names_new(process->reader, process->texts, tree,
		!part->options->no_fold, part->options->demangle, process->categories);
	const bool found = find_launch_nodes(part, node_names_nodes(names, 0), launched_at);

	if (found)
		set_sites(part, tree, launched_at, sites);
	node_names_free(names);
	tree_free(tree);
	return found;
}

/* Sets the sites by a pass over the trace. */
static void find_sites_by_pass(
	const struct part_process *part, uint32_t *launched_at, uint64_t *sites)
{
	const struct process *process = &part->input->process;
	const struct collectives *collectives = &part->input->collectives;
	struct collective_nodes nodes = collective_nodes_new(collectives);
	const struct profile_observer observer = { .context = &nodes, .leaf = add_leaf };
	struct profile_options options = collective_nodes_options(process, part->options);
	struct profile *profile;

	options.observer = &observer;
	options.no_percentiles = true;
	profile = profile_build(process->reader, process->texts, &options);
	profile->options.observer = NULL;
	for (size_t i = 0; i < collectives->count; i++)
		launched_at[i] = collective_node_of(&nodes, profile, i);
	set_sites(part, profile->tree, launched_at, sites);
	profile_free(profile);
	collective_nodes_free(&nodes);
}

/* Returns the sites of the collectives, and writes their paths. The caller frees the array. */
static uint64_t *find_sites(const struct part_process *part)
{
	const size_t count = part->input->collectives.count;
	uint64_t *sites = xcalloc((count + 1) * sizeof *sites);
	uint32_t *launched_at = xcalloc((count + 1) * sizeof *launched_at);

	if (!find_sites_by_nodes(part, launched_at, sites))
		find_sites_by_pass(part, launched_at, sites);
	free(launched_at);
	return sites;
}

static void put_collectives(const struct part_process *part)
{
	const struct collectives *collectives = &part->input->collectives;
	uint64_t *sites = collectives->count ? find_sites(part) : NULL;

	for (size_t i = 0; i < collectives->count; i++) {
		const struct collective *collective = &collectives->all[i];
		struct part_file *file = begin_row(part, PART_COLLECTIVES);

		part_integer(file, collective->communicator);
		part_integer(file,
			(int64_t)(i - collectives->communicators[collective->communicator].first));
		part_integer(file, collective->kind);
		part_integer(file, collective->start_ns);
		part_integer(file, collective->end_ns);
		part_known(file, collective->requested_ns);
		part_known(file, collective->launched_ns);
		part_integer(file, (int64_t)collective->exposed_ns);
		part_integer(file, (int64_t)sites[i]);
		part_integer(file, (int64_t)collective->bytes);
		part_integer(file, (int64_t)collective->bus_bytes);
		part_row_end(file);
	}
	free(sites);
}

static void put_names(struct part_file *file, char *const *names, size_t count)
{
	struct text_builder list = { .text = NULL };

	for (size_t i = 0; i < count; i++) {
		text_add_bytes(&list, "/", i > 0);
		text_add_path_name(&list, names[i], strlen(names[i]));
	}
	part_text(file, list.text ? list.text : "", list.used);
	free(list.text);
}

static void put_ends(const struct part_process *part)
{
	const struct rank_end *end = part->input->end;

	for (size_t i = 0; end && i < end->thread_count; i++) {
		struct part_file *file = begin_row(part, PART_ENDS);

		part_integer(file, end->threads[i].tid);
		part_integer(file, (int64_t)end->threads[i].begin_ns);
		put_names(file, end->threads[i].path, end->threads[i].path_count);
		part_string(file, end->threads[i].source);
		put_names(file, end->threads[i].frames, end->threads[i].frame_count);
		part_string(file, end->threads[i].call);
		part_row_end(file);
	}
}

static void put_requests(const struct part_process *part)
{
	const struct communicator_requests *requests = &part->input->requests;

	for (size_t i = 0; i < requests->count; i++) {
		const struct communicator_request *request = &requests->all[i];
		struct part_file *file = begin_row(part, PART_REQUESTS);

		part_integer(file, (int64_t)request->key);
		put_number(file, request->from);
		put_number(file, request->to);
		part_integer(file, request->ranks);
		part_integer(file, request->rank);
		part_integer(file, (int64_t)request->count);
		part_integer(file, (int64_t)request->pairs);
		part_string(file, nccl_operation_name(request->operation));
		part_flag(file, request->is_being_made);
		part_string(file, request->name);
		part_row_end(file);
	}
}

/* ---- rows of the report ---- */

/* Writes the cells of a row in the columns of a list such as PART_STEP_COLUMNS. */
static void put_cells(
	struct part_file *file, const struct rows *rows, const struct row *row, const char *columns)
{
	while (*columns) {
		const size_t length = strcspn(columns, " "), name = strcspn(columns, ": ");
		const struct cell cell = column_value(column_find(columns, name), row, rows);

		part_cell(file);
		print_csv_cell(file->out, row, &cell);
		columns += length + (columns[length] == ' ');
	}
}

static bool is_empty(const struct node *node)
{
	return !node->calls && !node->total_ns && !(node->gpu && node->gpu->total_ns) &&
	       !node->memory && !node->tensors;
}

struct spread_writer {
	const struct part_process *part;
	uint64_t key;
	const char *of;
};

static void put_bucket(void *context, unsigned bucket, uint64_t count)
{
	const struct spread_writer *spread = context;
	struct part_file *file = begin_row(spread->part, PART_SPREADS);

	part_integer(file, (int64_t)spread->key);
	part_string(file, spread->of);
	part_integer(file, bucket);
	part_integer(file, (int64_t)count);
	part_row_end(file);
}

static void put_spreads(const struct part_process *part, struct node *node, uint64_t key)
{
	struct spread_writer spread = { part, key, "duration" };

	percentiles_buckets(&node->samples, put_bucket, &spread);
	spread.of = "delay";
	if (node->gpu)
		percentiles_buckets(&node->gpu->delays, put_bucket, &spread);
}

static void put_places(const struct part_process *part)
{
	struct process *process = &part->input->process;
	const struct tree *tree = process->profile->tree;
	uint64_t *keys = part_path_hashes(process, tree, true);
	const struct rows rows = { .count = 0 };

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct row row = tree_row(process, tree, id);
		struct part_file *file;

		if (is_empty(&tree->nodes[id]))
			continue;
		file = begin_row(part, PART_PLACES);
		part_integer(file, id);
		part_integer(file, (int64_t)keys[id]);
		put_cells(file, &rows, &row, PART_PLACE_COLUMNS);
		part_row_end(file);
		put_spreads(part, &tree->nodes[id], keys[id]);
	}
	free(keys);
}

static void put_findings(const struct part_process *part)
{
	struct options options = *part->options;
	struct process *process = &part->input->process;
	struct processes one = { .all = process, .count = 1, .shown = 1, .categories = NULL };
	struct rows rows = { .count = 0 };

	options.view = view_find("diagnose");
	process->shown = true;
	(*options.view->arrange)(&options, &one, &rows);
	for (size_t i = 0; i < rows.count; i++) {
		const struct cell kind = column_value(column_find("kind", 4), &rows.rows[i], &rows);
		struct part_file *file;

		if (kind.kind != CELL_TEXT ||
			!memmem("finding note", 12, kind.text.bytes, kind.text.length))
			continue;
		file = begin_row(part, PART_FINDINGS);
		put_cells(file, &rows, &rows.rows[i], PART_FINDING_COLUMNS);
		part_row_end(file);
	}
	for (size_t i = 0; i < one.warning_count; i++)
		free(one.warnings[i]);
	free(one.warnings);
	free(rows.rows);
}

/* Writes the steps one by one: a row of the view takes 4 KB. */
static void put_steps(const struct part_process *part)
{
	struct process *process = &part->input->process;
	const bool has_steps = process->steps && process->steps->count;
	const size_t count = has_steps ? step_table_of(process)->count : 0;
	const struct rows rows = { .count = 0 };

	for (size_t i = 0; i < count; i++) {
		const struct row row = steps_row(part->options, process, i);
		struct part_file *file = begin_row(part, PART_STEPS);

		put_cells(file, &rows, &row, PART_STEP_COLUMNS);
		part_row_end(file);
		computed_rows_free(process);
	}
}

void part_process_write(const struct part_process *part)
{
	put_process(part);
	if (!part->is_open)
		return;
	put_communicators(part);
	put_collectives(part);
	put_requests(part);
	put_ends(part);
	collectives_free(&part->input->collectives);
	put_places(part);
	put_steps(part);
	if (!part->options->no_findings)
		put_findings(part);
}
