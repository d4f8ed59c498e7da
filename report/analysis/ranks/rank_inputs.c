/* SPDX-License-Identifier: MIT */
#include "report/analysis/ranks/rank_inputs.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/error.h"
#include "report/base/file_set.h"
#include "report/base/text_builder.h"
#include "report/import/open_trace.h"
#include "report/import/run_files.h"
#include "report/trace/trace_header.h"
#include <glob.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Runs whose recordings are no further apart may be one job. The clocks of its computers may
 * differ, and its processes do not start at once. */
#define JOB_APART_NS UINT64_C(60000000000)

/* Each file of another tool that was converted keeps a descriptor and its space. Of up to so many
 * files, all are kept, so that the second pass need not convert them again. */
#define CONVERTED_MAX 24u

static const struct {
	const char *name, *text;
} statuses[] = {
#define X(id, json, text) { json, text },
	RANK_INPUT_STATUSES(X)
#undef X
};

const char *rank_input_status_name(enum rank_input_status status)
{
	return statuses[status].name;
}

const char *rank_input_status_text(enum rank_input_status status)
{
	return statuses[status].text;
}

void rank_input_refuse(
	struct rank_input *input, enum rank_input_status status, const char *format, ...)
{
	struct text_builder why = { .text = NULL };
	va_list list;

	va_start(list, format);
	text_add_list(&why, format, list);
	va_end(list);
	free(input->why);
	input->why = why.text;
	input->status = status;
}

bool rank_input_is_used(const struct rank_input *input)
{
	return input->status <= RANK_INPUT_DAMAGED;
}

bool rank_input_is_fault(const struct rank_input *input)
{
	return input->status != RANK_INPUT_OK && input->status != RANK_INPUT_NO_COLLECTIVES;
}

struct rank_input *rank_inputs_add(struct rank_inputs *inputs, const char *path)
{
	struct rank_input *input = xcalloc(sizeof *input);

	input->process.path = strdup(path);
	if (!input->process.path)
		fatal(STATUS_UNREADABLE, "out of memory for a path");
	input->process.rank = -1;
	*ARRAY_ADD(inputs->all, inputs->room, inputs->count) = input;
	return input;
}

void rank_inputs_forget(const struct rank_inputs *inputs, const char *path)
{
	if (inputs->count > CONVERTED_MAX)
		open_trace_forget(path);
}

void rank_inputs_free(struct rank_inputs *inputs)
{
	for (size_t i = 0; i < inputs->count; i++) {
		struct rank_input *input = inputs->all[i];

		collectives_free(&input->collectives);
		communicator_requests_free(&input->requests);
		rank_end_free(input->end);
		free(input->process.command);
		free(input->process.path);
		free(input->why);
		free(input);
	}
	free(inputs->all);
	*inputs = (struct rank_inputs){ .count = 0 };
}

/* ---- files, directories and patterns ---- */

/* A run of which a trace was named, and the folder of that trace. */
struct named_run {
	const char *folder; /* owned */
	uint64_t run_id;
};

struct input_finder {
	struct rank_inputs *inputs;
	struct file_set *files, *folders; /* that were added, listed */
	struct named_run *runs;
	size_t run_count, run_room;
};

static struct rank_input *add_file(struct input_finder *finder, const char *path)
{
	return file_set_add(finder->files, path) ? rank_inputs_add(finder->inputs, path) : NULL;
}

static bool is_directory(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISDIR(status.st_mode);
}

static void add_directory(struct input_finder *finder, const char *folder)
{
	char error[READER_ERROR_BYTES];
	struct run_files files;

	if (!file_set_add(finder->folders, folder))
		return;
	if (!run_files_all_in_directory(folder, &files, error)) {
		rank_input_refuse(rank_inputs_add(finder->inputs, folder), RANK_INPUT_UNREADABLE,
			"%s", error);
		return;
	}
	if (!files.count)
		rank_input_refuse(rank_inputs_add(finder->inputs, folder), RANK_INPUT_UNREADABLE,
			"%s: is a directory without a trace in it", folder);
	for (uint32_t i = 0; i < files.count; i++)
		add_file(finder, files.traces[i].path);
	run_files_free(&files);
}

/* Keeps the run of the named trace `path`, so that its other traces are found. */
static void remember_run(struct input_finder *finder, const char *path)
{
	char error[READER_ERROR_BYTES];
	struct trace_header header;
	uint64_t bytes;
	const int fd = trace_file_open(path, &bytes, error);
	const char *slash = strrchr(path, '/');
	char *folder;

	if (fd >= 0 && header_read(fd, path, &header, error) && header.run_id) {
		folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
		if (!folder)
			fatal(STATUS_UNREADABLE, "out of memory for a path");
		*ARRAY_ADD(finder->runs, finder->run_room,
			finder->run_count) = (struct named_run){ folder, header.run_id };
	}
	if (fd >= 0)
		close(fd);
}

static void add_path(struct input_finder *finder, const char *path)
{
	if (is_directory(path))
		add_directory(finder, path);
	else if (add_file(finder, path))
		remember_run(finder, path);
}

/* Adds the files and directories that a pattern matches; what matches nothing is a file that does
 * not exist. */
static void add_argument(struct input_finder *finder, const char *argument)
{
	glob_t found = { .gl_pathc = 0 };

	if (!access(argument, F_OK) || !strpbrk(argument, "*?[") ||
		glob(argument, 0, NULL, &found)) {
		add_path(finder, argument);
		return;
	}
	for (size_t i = 0; i < found.gl_pathc; i++)
		add_path(finder, found.gl_pathv[i]);
	globfree(&found);
}

static int by_folder(const void *a, const void *b)
{
	const struct named_run *left = a, *right = b;
	const int order = strcmp(left->folder, right->folder);

	return order ? order : COMPARE(left->run_id, right->run_id);
}

static bool is_named_run(const struct named_run *runs, size_t count, uint64_t run_id)
{
	size_t low = 0, high = count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (runs[middle].run_id < run_id)
			low = middle + 1;
		else
			high = middle;
	}
	return run_id && low < count && runs[low].run_id == run_id;
}

static int by_own_start(const void *a, const void *b)
{
	const struct run_file *left = a, *right = b;

	if (left->start_unix_ns != right->start_unix_ns)
		return left->start_unix_ns < right->start_unix_ns ? -1 : 1;
	return left->pid != right->pid ? (left->pid < right->pid ? -1 : 1)
				       : strcmp(left->path, right->path);
}

/* Adds the traces in `folder` that belong to one of `count` runs, sorted by id. */
static void add_siblings(
	struct input_finder *finder, const char *folder, const struct named_run *runs, size_t count)
{
	char error[READER_ERROR_BYTES];
	struct run_files files;

	if (!file_set_add(finder->folders, folder) ||
		!run_files_all_in_directory(folder, &files, error))
		return;
	qsort(files.traces, files.count, sizeof *files.traces, by_own_start);
	for (uint32_t i = 0; i < files.count; i++) {
		const char *path = files.traces[i].path;

		if (is_named_run(runs, count, files.traces[i].run_id))
			add_file(finder,
				strncmp(path, "./", 2) || strcmp(folder, ".") ? path : path + 2);
	}
	run_files_free(&files);
}

static void find_inputs(
	struct rank_inputs *inputs, const struct options *options, bool with_siblings)
{
	struct input_finder finder = {
		.inputs = inputs, .files = file_set_new(), .folders = file_set_new()
	};

	for (size_t i = 0; i < options->file_count; i++)
		add_argument(&finder, options->files[i]);
	if (finder.run_count)
		qsort(finder.runs, finder.run_count, sizeof *finder.runs, by_folder);
	for (size_t i = 0, next; with_siblings && i < finder.run_count; i = next) {
		for (next = i; next < finder.run_count &&
			       !strcmp(finder.runs[next].folder, finder.runs[i].folder);)
			next++;
		add_siblings(&finder, finder.runs[i].folder, finder.runs + i, next - i);
	}
	for (size_t i = 0; i < finder.run_count; i++)
		free((char *)(uintptr_t)finder.runs[i].folder);
	free(finder.runs);
	file_set_free(finder.files);
	file_set_free(finder.folders);
}

void rank_inputs_find(struct rank_inputs *inputs, const struct options *options)
{
	find_inputs(inputs, options, true);
}

void rank_inputs_find_named(struct rank_inputs *inputs, const struct options *options)
{
	find_inputs(inputs, options, false);
}

/* ---- which of them are the ranks ---- */

static uint64_t end_unix_ns(const struct rank_input *input)
{
	return input->process.start_unix_ns + input->process.wall_ns;
}

/* The traces of one run among the inputs, which are sorted by run. */
struct input_run {
	uint64_t run_id, begin_ns, end_ns;
	size_t first, count;
	bool is_of_job;
};

static int by_run(const void *a, const void *b)
{
	const struct rank_input *left = *(struct rank_input *const *)a,
				*right = *(struct rank_input *const *)b;

	if (left->run_id != right->run_id)
		return left->run_id < right->run_id ? -1 : 1;
	return process_compare_start(&left->process, &right->process);
}

/* The run with the most traces first; of equal ones the newest. */
static int by_size(const void *a, const void *b)
{
	const struct input_run *left = a, *right = b;

	if (left->count != right->count)
		return left->count > right->count ? -1 : 1;
	return COMPARE(right->begin_ns, left->begin_ns);
}

/* Lists the runs of those of `used` that belong to one, sorted by by_run. The caller frees them. */
static struct input_run *list_runs(struct rank_input *const *used, size_t count, size_t *runs)
{
	struct input_run *all = xcalloc((count + 1) * sizeof *all);

	*runs = 0;
	for (size_t i = 0; i < count; i++) {
		struct input_run *run = *runs ? &all[*runs - 1] : NULL;

		if (!used[i]->run_id || used[i]->process.rank < 0)
			continue;
		if (!run || run->run_id != used[i]->run_id) {
			run = &all[(*runs)++];
			*run = (struct input_run){
				.run_id = used[i]->run_id, .begin_ns = UINT64_MAX, .first = i
			};
		}
		run->count++;
		run->begin_ns = min_u64(run->begin_ns, used[i]->process.start_unix_ns);
		run->end_ns = max_u64(run->end_ns, end_unix_ns(used[i]));
	}
	return all;
}

/* The ranks that the job has so far. */
struct taken_ranks {
	uint8_t *taken; /* by rank */
	size_t room;
};

static bool is_taken(const struct taken_ranks *ranks, int64_t rank)
{
	return (size_t)rank < ranks->room && ranks->taken[rank];
}

/* Adds a run to the job. */
static void take_run(struct input_run *run, struct rank_input *const *used,
	struct taken_ranks *ranks, struct input_run *job)
{
	run->is_of_job = true;
	job->begin_ns = min_u64(job->begin_ns, run->begin_ns);
	job->end_ns = max_u64(job->end_ns, run->end_ns);
	for (size_t i = run->first; used[i] && used[i]->run_id == run->run_id; i++)
		if (used[i]->process.rank >= 0 && used[i]->process.rank < (1 << 24)) {
			array_grow_zeroed(
				&ranks->taken, &ranks->room, (size_t)used[i]->process.rank + 1, 1);
			ranks->taken[used[i]->process.rank] = 1;
		}
}

/* Whether a run was recorded together with the job, and has none of its ranks. */
static bool fits_job(const struct input_run *run, struct rank_input *const *used,
	const struct taken_ranks *ranks, const struct input_run *job)
{
	if (run->begin_ns > job->end_ns + JOB_APART_NS ||
		job->begin_ns > run->end_ns + JOB_APART_NS)
		return false;
	for (size_t i = run->first; used[i] && used[i]->run_id == run->run_id; i++)
		if (used[i]->process.rank >= 0 && is_taken(ranks, used[i]->process.rank))
			return false;
	return true;
}

static void refuse_run(
	const struct input_run *run, struct rank_input *const *used, const struct input_run *job)
{
	for (size_t i = run->first; used[i] && used[i]->run_id == run->run_id; i++)
		rank_input_refuse(used[i], RANK_INPUT_OTHER_RUN,
			"%s: is of run %016" PRIx64 ", not of run %016" PRIx64
			" (--run chooses one)",
			used[i]->process.path, run->run_id, job->run_id);
}

/* Moves the run that --run names to the first place. */
static void prefer_run(struct input_run *runs, size_t count, const struct options *options)
{
	struct input_run wanted;
	char *end;
	const uint64_t run_id = strtoull(options->run, &end, 16);
	size_t at = 0;

	while (at < count && runs[at].run_id != run_id)
		at++;
	if (at == count || *end)
		fatal(STATUS_USAGE, "no trace of a rank is of run %s (--run)", options->run);
	wanted = runs[at];
	memmove(runs + 1, runs, at * sizeof *runs);
	runs[0] = wanted;
}

/* Sets last_begin_ns of the inputs, which are sorted by run. */
static void set_last_begins(struct rank_input **used, size_t count)
{
	for (size_t first = 0, end; first < count; first = end) {
		uint64_t begin_ns = 0;

		for (end = first; end < count && used[end]->run_id == used[first]->run_id; end++)
			if (used[end]->status == RANK_INPUT_OK)
				begin_ns = max_u64(begin_ns, used[end]->process.start_unix_ns);
		for (size_t i = first; i < end; i++)
			used[i]->last_begin_ns = begin_ns;
	}
}

/* Decides which runs are the job. `used` ends with NULL. */
static void choose_run(struct rank_inputs *inputs, struct rank_input **used, size_t count,
	const struct options *options)
{
	struct taken_ranks ranks = { .room = 0 };
	struct input_run *runs, job;

	qsort(used, count, sizeof *used, by_run);
	set_last_begins(used, count);
	runs = list_runs(used, count, &inputs->run_count);
	if (inputs->run_count) {
		qsort(runs, inputs->run_count, sizeof *runs, by_size);
		if (options->run)
			prefer_run(runs, inputs->run_count, options);
		job = runs[0];
		inputs->run_id = job.run_id;
		for (size_t i = 0; i < inputs->run_count; i++)
			if (i == 0 || (!options->run && fits_job(&runs[i], used, &ranks, &job)))
				take_run(&runs[i], used, &ranks, &job);
			else
				refuse_run(&runs[i], used, &job);
	}
	free(runs);
	free(ranks.taken);
}

static bool same_bytes(const char *left_path, const char *right_path)
{
	FILE *left = fopen(left_path, "rb"), *right = fopen(right_path, "rb");
	char a[16384], b[16384];
	bool same = left && right;
	size_t got = 1;

	while (same && got) {
		got = fread(a, 1, sizeof a, left);
		same = fread(b, 1, sizeof b, right) == got && !memcmp(a, b, got);
	}
	if (left)
		fclose(left);
	if (right)
		fclose(right);
	return same;
}

static bool same_process(const struct rank_input *left, const struct rank_input *right)
{
	return left->run_id == right->run_id && left->process.pid == right->process.pid &&
	       left->process.start_unix_ns == right->process.start_unix_ns;
}

/* Refuses one of two traces of one rank, or both. Returns the one that is left; NULL: none is.
 * `earlier` began first. */
static struct rank_input *choose_one(struct rank_input *earlier, struct rank_input *later)
{
	struct rank_input *left = later, *refused = earlier;
	const bool one_is_whole = (earlier->status == RANK_INPUT_OK) !=
				  (later->status == RANK_INPUT_OK);
	const bool is_of_earlier_attempt = !same_process(earlier, later) &&
					   end_unix_ns(earlier) < earlier->last_begin_ns;
	const long long rank = (long long)later->process.rank;

	if (one_is_whole && earlier->status == RANK_INPUT_OK && !is_of_earlier_attempt) {
		left = earlier;
		refused = later;
	}
	if (same_process(earlier, later) &&
		same_bytes(earlier->process.path, later->process.path)) {
		rank_input_refuse(later, RANK_INPUT_COPY,
			"%s is a copy of %s: both have rank %lld; it is taken once",
			later->process.path, earlier->process.path, rank);
		return earlier;
	}
	if (same_process(earlier, later) && one_is_whole) {
		rank_input_refuse(refused, RANK_INPUT_COPY,
			"%s is a part of %s: both have rank %lld; the whole one is taken",
			refused->process.path, left->process.path, rank);
		return left;
	}
	if (!same_process(earlier, later) && earlier->run_id && earlier->run_id == later->run_id) {
		left->attempt = earlier->attempt + 1;
		rank_input_refuse(refused, RANK_INPUT_SUPERSEDED,
			"%s: is another attempt of rank %lld; %s is shown", refused->process.path,
			rank, left->process.path);
		return left;
	}
	rank_input_refuse(earlier, RANK_INPUT_CONFLICT,
		"%s and %s both have rank %lld; give one trace per rank", earlier->process.path,
		later->process.path, rank);
	rank_input_refuse(later, RANK_INPUT_CONFLICT, "%s", earlier->why);
	return NULL;
}

static int by_rank(const void *a, const void *b)
{
	const struct rank_input *left = *(struct rank_input *const *)a,
				*right = *(struct rank_input *const *)b;

	if (left->process.rank != right->process.rank)
		return left->process.rank < right->process.rank ? -1 : 1;
	return process_compare_start(&left->process, &right->process);
}

/* Without a number, only traces of one process are of one rank. */
static bool is_one_rank(const struct rank_input *before, const struct rank_input *input)
{
	return before->process.rank == input->process.rank &&
	       (input->process.rank >= 0 || (input->run_id && same_process(before, input)));
}

/* Chooses one trace of each rank. A trace of a rank without a choice is refused too. */
static void choose_traces(struct rank_input **used, size_t count)
{
	struct rank_input *chosen = NULL, *before = NULL;

	qsort(used, count, sizeof *used, by_rank);
	for (size_t i = 0; i < count; i++) {
		if (!rank_input_is_used(used[i]))
			continue;
		if (!before || !is_one_rank(before, used[i]))
			chosen = used[i];
		else if (chosen)
			chosen = choose_one(chosen, used[i]);
		else
			rank_input_refuse(used[i], RANK_INPUT_CONFLICT, "%s", before->why);
		before = used[i];
	}
}

void rank_inputs_choose(struct rank_inputs *inputs, const struct options *options)
{
	struct rank_input **used = xcalloc((inputs->count + 1) * sizeof *used);
	size_t count = 0;

	for (size_t i = 0; i < inputs->count; i++)
		if (rank_input_is_used(inputs->all[i]))
			used[count++] = inputs->all[i];
	choose_run(inputs, used, count, options);
	choose_traces(used, count);
	free(used);
}
