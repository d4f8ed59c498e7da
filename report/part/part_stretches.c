/* SPDX-License-Identifier: MIT */
#include "report/part/part_stretches.h"
#include "report/analysis/ranks/interval_times.h"
#include "report/analysis/ranks/rank_set.h"
#include "report/base/error.h"
#include "report/part/part_file.h"
#include "report/part/part_paths.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The process whose stretches are listed. */
struct listed_process {
	uint64_t run_id, start_unix_ns;
	unsigned pid;
};

static void read_stretches(
	const char *name, struct listed_process *listed, struct interval_times *lists)
{
	FILE *file = fopen(name, "r");
	uint64_t begin_ns, end_ns;
	unsigned list;
	int got = 0;

	if (!file)
		fatal(STATUS_UNREADABLE, "%s: cannot be read:", name);
	if (fscanf(file, "process %" SCNx64 " %u %" SCNu64, &listed->run_id, &listed->pid,
		    &listed->start_unix_ns) != 3)
		fatal(STATUS_UNREADABLE, "%s: does not say of which process its stretches are",
			name);
	while ((got = fscanf(file, "%u %" SCNu64 " %" SCNu64, &list, &begin_ns, &end_ns)) == 3)
		if (list >= RANKS_STRAGGLERS_MAX || end_ns < begin_ns)
			fatal(STATUS_UNREADABLE, "%s: has a stretch that is none", name);
		else
			interval_times_add(&lists[list], begin_ns, end_ns);
	if (got != EOF)
		fatal(STATUS_UNREADABLE, "%s: is not a list of stretches", name);
	fclose(file);
}

static void put_node(struct part_file *file, const struct process *process,
	const struct profile *profile, uint32_t id, const uint64_t *hashes,
	const struct interval_times *times)
{
	const struct node *node = &profile->tree->nodes[id];
	struct text_builder path = { .text = NULL };

	part_path_add(&path, process, profile->tree, id);
	part_integer(file, id);
	part_integer(file, node->parent);
	part_integer(file, (int64_t)hashes[id]);
	part_integer(file, node->kind == NODE_ASYNC);
	part_integer(file, (int64_t)times->cpu[id]);
	part_integer(file, (int64_t)times->gpu[id]);
	part_text(file, path.text, path.used);
	free(path.text);
	part_row_end(file);
}

static void put_lists(struct process *process, const struct profile *profile,
	const struct interval_times *lists, struct output *out)
{
	struct part_file file = { .out = out };
	uint64_t *hashes = part_path_hashes(process, profile->tree, false);

	output_string(out, "list,node,parent,site,async,cpu_ns,gpu_ns,path\n");
	for (size_t list = 0; list < RANKS_STRAGGLERS_MAX; list++)
		for (uint32_t id = 1; lists[list].count && id < profile->tree->count; id++) {
			if (!lists[list].cpu[id] && !lists[list].gpu[id])
				continue;
			file.has_cell = false;
			part_integer(&file, (int64_t)list);
			put_node(&file, process, profile, id, hashes, &lists[list]);
		}
	free(hashes);
}

/* The file of a trace may have been replaced since its part was written. */
static void check_process(const struct process *process, const struct listed_process *listed)
{
	if (reader_header(process->reader)->run_id != listed->run_id ||
		process->pid != listed->pid || process->start_unix_ns != listed->start_unix_ns)
		fatal(STATUS_UNREADABLE,
			"%s: is not the trace of which the part was written: another process "
			"wrote it",
			process->path);
}

int part_stretches(const struct options *options)
{
	char error[READER_ERROR_BYTES], *path = (char *)(uintptr_t)options->files[0];
	struct interval_times lists[RANKS_STRAGGLERS_MAX] = { { .count = 0 } };
	struct interval_pass pass = { lists, RANKS_STRAGGLERS_MAX, NULL };
	const struct profile_observer observer = interval_pass_observer(&pass);
	struct categories *categories = categories_read(options->categories);
	struct process process = { .path = path, .categories = categories };
	struct listed_process listed;
	struct profile_options wanted;
	struct profile *profile;
	struct output *out;

	if (options->file_count != 1)
		fatal(STATUS_USAGE, "--stretches needs one trace");
	read_stretches(options->stretches, &listed, lists);
	if (!process_open(&process, error))
		fatal(STATUS_UNREADABLE, "%s", error);
	check_process(&process, &listed);
	wanted = collective_nodes_options(&process, options);
	wanted.observer = &observer;
	profile = profile_build(process.reader, process.texts, &wanted);
	profile->options.observer = NULL;
	interval_pass_finish(&pass, profile);
	out = output_open(options->output);
	put_lists(&process, profile, lists, out);
	profile_free(profile);
	process_close(&process);
	free(process.command);
	categories_free(categories);
	for (size_t i = 0; i < RANKS_STRAGGLERS_MAX; i++)
		interval_times_free(&lists[i]);
	return output_close(out, options->output) ? STATUS_OK : STATUS_UNREADABLE;
}
