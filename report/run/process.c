/* SPDX-License-Identifier: MIT */
#include "report/run/process.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/import/open_trace.h"
#include "report/import/run_files.h"
#include "report/base/file_set.h"
#include "report/run/kept_process.h"
#include "report/run/warnings.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define SIMULATED_DEVICE "pperf simulated device"

void processes_warn(struct processes *processes, const char *format, ...)
{
	char *text = xcalloc(1024);
	va_list list;

	va_start(list, format);
	vsnprintf(text, 1024, format, list);
	va_end(list);
	array_grow_zeroed(&processes->warnings, &processes->warning_room,
		processes->warning_count + 1, sizeof(char *));
	processes->warnings[processes->warning_count++] = text;
}

void processes_raise_warning(struct processes *processes)
{
	char **const warnings = processes->warnings;
	const size_t last = processes->warning_count - 1, first = processes->warnings_first++;
	char *const raised = warnings[last];

	memmove(warnings + first + 1, warnings + first, (last - first) * sizeof *warnings);
	warnings[first] = raised;
}

struct trace_text process_meta(const struct process *process, const char *key)
{
	return reader_meta(process->reader, key);
}

bool process_tensor_levels_are_least(const struct process *process)
{
	const struct trace_text state = process_meta(process, "source.torch_memory");

	return process_meta(process, "import.format").known && state.length >= 7 &&
	       !memcmp(state.bytes, "partial", 7);
}

uint64_t process_recording_ns(const struct process *process, uint64_t *event_ns)
{
	const struct trace_text measured = process_meta(process, "cost.event_ns");
	const struct profile_options *options = &process->profile->options;
	char text[16] = "";

	if (measured.length < sizeof text)
		memcpy(text, measured.bytes, measured.length);
	*event_ns = strtoull(text, NULL, 10);
	if (options->steps || options->windows || *event_ns > 1000000)
		return 0;
	return process->events * *event_ns;
}

const struct trace_device *process_device(const struct process *process, uint32_t number)
{
	const struct trace_device *device;

	for (uint32_t i = 0; (device = reader_dictionary(process->reader, TRACE_DEVICE, i)); i++)
		if (device->device == number)
			return device;
	return NULL;
}

bool device_is_simulated(struct trace_reader *reader, const struct trace_device *device)
{
	const struct trace_text name = reader_name(reader, device->name);

	return name.length == strlen(SIMULATED_DEVICE) &&
	       memcmp(name.bytes, SIMULATED_DEVICE, name.length) == 0;
}

static bool any_simulated(const struct process *process)
{
	const struct trace_device *device;

	for (uint32_t i = 0; (device = reader_dictionary(process->reader, TRACE_DEVICE, i)); i++)
		if (device_is_simulated(process->reader, device))
			return true;
	return false;
}

int64_t process_meta_number(const struct process *process, const char *key)
{
	uint64_t number;

	return reader_meta_number(process->reader, key, &number) && number < UINT64_C(100000000000)
		       ? (int64_t)number
		       : -1;
}

/* Adds the file at `path` if it is not in `set`. */
static void add_trace(
	struct processes *processes, struct file_set *set, size_t *room, const char *path)
{
	if (!file_set_add(set, path))
		return;
	array_grow_zeroed(&processes->all, room, processes->count + 1, sizeof *processes->all);
	processes->all[processes->count] = (struct process){ .path = strdup(path) };
	if (!processes->all[processes->count++].path)
		fatal(STATUS_UNREADABLE, "out of memory for a path");
}

/* Adds the traces of the run that `path` belongs to. `found_siblings`: the files that earlier calls
 * found this way. Nothing is done for one of them, because its whole run is added already. */
static void add_siblings(struct processes *processes, struct file_set *set,
	struct file_set *found_siblings, size_t *room, const char *path)
{
	char error[READER_ERROR_BYTES];
	struct run_files siblings;

	if (file_set_has(found_siblings, path))
		return;
	if (!run_files_find(path, &siblings, error))
		fatal(STATUS_UNREADABLE, "%s", error);
	for (uint32_t i = 0; i < siblings.count; i++) {
		if (strcmp(siblings.traces[i].path, path))
			file_set_add(found_siblings, siblings.traces[i].path);
		add_trace(processes, set, room, siblings.traces[i].path);
	}
	run_files_free(&siblings);
}

/* Each shown trace stays open, so raise the limit to what the system allows. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Finds the named traces, and if `with_siblings` those of the same runs beside them. */
static void find_traces(
	struct processes *processes, const struct options *options, bool with_siblings)
{
	struct file_set *set = file_set_new(), *found_siblings = file_set_new();
	size_t room = 0;

	for (size_t i = 0; i < options->file_count; i++)
		add_trace(processes, set, &room, options->files[i]);
	for (size_t i = 0; i < options->file_count && with_siblings; i++)
		add_siblings(processes, set, found_siblings, &room, options->files[i]);
	file_set_free(set);
	file_set_free(found_siblings);
	if (processes->count > 1)
		allow_many_files();
}

/* Returns whether the owners of idle gaps and the launch delays are needed: for JSON and CSV
 * always, for text only if a column shows them. They take a sixth more time in traces with much GPU
 * work. */
static bool needs_owners(const struct options *options)
{
	static const char *const keys[] = { "idle_before", "delay_" };

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if ((options->columns && strstr(options->columns, keys[i])) ||
			(options->sort && strstr(options->sort, keys[i])))
			return true;
	return options->charges_idle || options->format != FORMAT_TEXT;
}

static struct profile_options profile_options_of(const struct options *options)
{
	return (struct profile_options){
		.no_fold = options->no_fold,
		.demangle = options->demangle,
		.device = options->device,
		.metric = options->metric,
		.pick_metric = !options->metric_name,
		.counter = options->metric_name,
		.min_percent_of_target = options->min_percent == 0  ? -1
					 : options->min_percent > 0 ? options->min_percent
								    : 0,
		.steps = options->steps,
		.first_step = options->first_step,
		.last_step = options->last_step,
		.no_owners_and_delays = !needs_owners(options),
		.no_percentiles = options->no_percentiles,
		.sample_places = options->shows_samples,
	};
}

/* Returns a node's value of a metric. Of levels, which do not add up, it is the worst
 * instance's. */
static long double node_metric_value(const struct node *node, enum metric metric)
{
	switch (metric) {
	case METRIC_GPU:
		return node->gpu ? node->gpu->total_ns : 0;
	case METRIC_IDLE:
		return node->gpu ? node->gpu->idle_ns : 0;
	case METRIC_ALLOC:
		return node->memory ? node->memory->alloc_bytes : 0;
	case METRIC_TENSORS:
		return node->tensors ? node->tensors->total.alloc_bytes : 0;
	case METRIC_CPU:
	case METRIC_WALL:
		return node->total_ns;
	case METRIC_CALLS:
		return node->calls;
	default:
		return node->worst ? node->worst->value : 0;
	}
}

static bool is_time_metric(enum metric metric)
{
	return metric == METRIC_CPU || metric == METRIC_WALL;
}

/* Returns the sum of the metric over the roots; 0 for levels, which do not add up. */
static long double metric_total(const struct profile *profile)
{
	long double sum = 0;

	if (metrics[profile->options.metric].nature == METRIC_LEVEL)
		return 0;
	for (uint32_t id = profile->tree->nodes[0].first_child; id;
		id = profile->tree->nodes[id].next)
		if (profile_root_has_share(profile, id, is_time_metric(profile->options.metric)))
			sum += node_metric_value(
				&profile->tree->nodes[id], profile->options.metric);
	return sum;
}

static void use_profile_metric(struct process *process)
{
	process->metric = process->profile->options.metric;
	process->whole = metric_total(process->profile);
}

/* Finds the steps. The same pass over the trace makes the timeline. */
static void find_process_steps(struct process *process, const struct options *options)
{
	struct timeline *timeline = NULL;

	if (!options->no_steps) {
		timeline = timeline_new(process->reader, options->device, process->categories);
		process->steps = recording_windows_steps(process->windows,
			steps_find(process->reader, options->step_marker, timeline));
	}
	if (timeline && timeline_has_ended(timeline) &&
		timeline_devices(timeline, &(const struct timeline_device *){ NULL }))
		process->timeline = timeline;
	else
		timeline_free(timeline);
}

bool process_open(struct process *process, char *error)
{
	struct trace_text command;

	process->reader = import_open_trace(process->path, error);
	if (!process->reader)
		return false;
	command = process_meta(process, "command");
	free(process->command);
	process->command = xcalloc(command.length + 1);
	memcpy(process->command, command.bytes, command.length);
	process->pid = reader_header(process->reader)->pid;
	process->rank = process_meta_number(process, "rank");
	if (process->rank >= 0)
		snprintf(process->rank_name, sizeof process->rank_name, "rank %lld",
			(long long)process->rank);
	process->start_unix_ns = reader_start_unix_ns(process->reader);
	process->simulated = any_simulated(process);
	process->texts = string_table_new();
	process->windows = recording_windows_read(process->reader);
	process->handovers = handover_list_read(process->reader);
	return true;
}

struct profile_options process_profile_options(
	const struct process *process, const struct options *options)
{
	struct profile_options wanted = profile_options_of(options);

	wanted.categories = process->categories;
	wanted.windows = process->windows;
	wanted.found_steps = process->steps;
	wanted.timeline = process->timeline;
	return wanted;
}

/* Makes the pass over the trace that makes the profile. Returns true if process->join has an
 * observer in it. */
static bool fill_profile(struct process *process, const struct options *options)
{
	const struct process_join *join = process->join;
	const struct profile_options wanted = process_profile_options(process, options);
	struct profile *profile = profile_new(process->reader, process->texts, &wanted);
	const struct profile_observer *observer;

	process->profile = profile;
	observer = join ? (*join->begin)(join->context, options, process) : NULL;
	profile->options.observer = observer;
	profile->options.observer_joins = observer != NULL;
	profile_fill(profile);
	profile->options.observer = NULL;
	profile->options.observer_joins = false;
	return observer != NULL;
}

static void use_profile(struct process *process)
{
	process->profile->options.sample_places = false;
	use_profile_metric(process);
	process->integrity = integrity_of(process->profile);
	process->complete = process->integrity.complete && process->integrity.conserved;
	process->gpu_ns = process->profile->totals.gpu_sum_ns;
	process->events = process->profile->counts.events;
	process->wall_ns = process->profile->totals.wall_ns;
}

bool process_read(struct process *process, const struct options *options, char *error)
{
	struct cache_key key;
	bool is_observed = false;

	if (!process_open(process, error))
		return false;
	key = kept_process_key(process, options);
	if (!kept_process_read(process, options, &key)) {
		find_process_steps(process, options);
		is_observed = fill_profile(process, options);
		steps_finish_gpu(process->steps);
		kept_process_write(process, options, &key);
	}
	use_profile(process);
	if (is_observed)
		(*process->join->end)(process->join->context, process->profile);
	return true;
}

/* Data that a view keeps with its process. */
struct process_attachment {
	struct process_attachment *next;
	const void *key;
	void *data;
	void (*release)(void *data);
};

const char *process_name(const struct process *process)
{
	return process->rank >= 0 ? process->rank_name : process->command;
}

void process_attach(
	struct process *process, const void *key, void *data, void (*release)(void *data))
{
	struct process_attachment *attachment = xcalloc(sizeof *attachment);

	*attachment = (struct process_attachment){ process->attachments, key, data, release };
	process->attachments = attachment;
}

void *process_attached(const struct process *process, const void *key)
{
	for (const struct process_attachment *attachment = process->attachments; attachment;
		attachment = attachment->next)
		if (attachment->key == key)
			return attachment->data;
	return NULL;
}

void process_detach_all(struct process *process)
{
	while (process->attachments) {
		struct process_attachment *attachment = process->attachments;

		process->attachments = attachment->next;
		attachment->release(attachment->data);
		free(attachment);
	}
}

void process_measure(struct process *process, enum metric metric, const char *counter)
{
	struct profile_options wanted = process->profile->options;
	struct sample_places *places = process->profile->sample_places;

	wanted.metric = metric;
	wanted.pick_metric = false;
	wanted.counter = counter;
	process->profile->sample_places = NULL;
	profile_free(process->critical);
	profile_free(process->full_names_profile);
	profile_free(process->profile);
	tree_free(process->flat);
	tree_free(process->extra_rows);
	process_detach_all(process);
	process->critical = process->full_names_profile = NULL;
	process->flat = process->extra_rows = NULL;
	process->profile = profile_build(process->reader, process->texts, &wanted);
	process->profile->sample_places = places;
	use_profile_metric(process);
}

void process_close(struct process *process)
{
	for (size_t i = 0; i < process->instance_count; i++) {
		profile_free(process->instances[i].profile);
		instance_free(process->instances[i].instance);
	}
	free(process->instances);
	process->instances = NULL;
	process->instance_count = process->instance_room = 0;
	process_detach_all(process);
	profile_free(process->critical);
	profile_free(process->full_names_profile);
	profile_free(process->usual_steps_profile);
	profile_free(process->profile);
	steps_free(process->steps);
	recording_windows_free(process->windows);
	handover_list_free(process->handovers);
	timeline_free(process->timeline);
	tree_free(process->flat);
	tree_free(process->extra_rows);
	if (process->symbols)
		symbols_close(process->symbols);
	string_table_free(process->texts);
	reader_close(process->reader);
	process->critical = process->profile = process->full_names_profile =
		process->usual_steps_profile = NULL;
	process->steps = NULL;
	process->timeline = NULL;
	process->windows = NULL;
	process->handovers = NULL;
	process->flat = process->extra_rows = NULL;
	process->symbols = NULL;
	process->texts = NULL;
	process->reader = NULL;
}

int process_compare_start(const void *a, const void *b)
{
	const struct process *left = a, *right = b;

	if (left->shown != right->shown)
		return left->shown ? -1 : 1;
	if (left->rank != right->rank && left->rank >= 0 && right->rank >= 0)
		return left->rank < right->rank ? -1 : 1;
	if (left->start_unix_ns != right->start_unix_ns)
		return left->start_unix_ns < right->start_unix_ns ? -1 : 1;
	return left->pid != right->pid ? (left->pid < right->pid ? -1 : 1)
				       : strcmp(left->path, right->path);
}

static bool has_more_work(const struct process *a, const struct process *b)
{
	if (a->gpu_ns != b->gpu_ns)
		return a->gpu_ns > b->gpu_ns;
	return a->events != b->events ? a->events > b->events : process_compare_start(a, b) < 0;
}

/* Compares the process `candidate` with `*best`, and releases the one that is not to be shown. With
 * --all none is released, and `*best` is the last one. With --rank, releases processes of other
 * ranks. */
static void keep_best(
	struct processes *processes, const struct options *options, size_t candidate, size_t *best)
{
	struct process *process = &processes->all[candidate];

	if (options->rank >= 0 && process->rank != options->rank) {
		process_close(process);
	} else if (options->all) {
		process->shown = true;
		*best = candidate;
	} else if (*best == SIZE_MAX || has_more_work(process, &processes->all[*best])) {
		if (*best != SIZE_MAX)
			process_close(&processes->all[*best]);
		*best = candidate;
	} else {
		process_close(process);
	}
}

/* Reads all processes. Returns the index of the one with the most GPU time, with --rank among those
 * of that rank, with --all of the last one. SIZE_MAX: none has that rank. Skips unreadable files
 * that were not named. */
static size_t read_all_processes(struct processes *processes, const struct options *options)
{
	char error[READER_ERROR_BYTES];
	size_t best = SIZE_MAX, kept = 0;

	for (size_t i = 0; i < processes->count; i++) {
		struct process *process = &processes->all[kept];

		*process = processes->all[i];
		process->categories = processes->categories;
		if (process_read(process, options, error)) {
			keep_best(processes, options, kept++, &best);
			continue;
		}
		if (i < options->file_count)
			fatal(STATUS_UNREADABLE, "%s", error);
		processes_warn(processes, "%s", error);
		free(process->path);
	}
	processes->count = kept;
	return best;
}

struct processes processes_read(const struct options *options)
{
	return processes_read_with(options, NULL);
}

struct processes processes_read_with(const struct options *options, const struct process_join *join)
{
	struct processes processes = { .categories = categories_read(options->categories) };
	size_t best;

	find_traces(&processes, options, true);
	if (processes.count == 1)
		processes.all->join = join;
	best = read_all_processes(&processes, options);
	if (best == SIZE_MAX)
		fatal(STATUS_USAGE, "no process of the run of %s has rank %lld", options->files[0],
			(long long)options->rank);
	processes.all[best].shown = true;
	processes.all->join = NULL;
	qsort(processes.all, processes.count, sizeof *processes.all, process_compare_start);
	while (processes.shown < processes.count && processes.all[processes.shown].shown)
		processes.shown++;
	return processes;
}

struct processes processes_read_named(const struct options *options)
{
	struct processes processes = { .categories = categories_read(options->categories) };
	char error[READER_ERROR_BYTES];

	find_traces(&processes, options, false);
	for (; processes.shown < processes.count; processes.shown++) {
		struct process *process = &processes.all[processes.shown];

		process->categories = processes.categories;
		if (!process_read(process, options, error))
			fatal(STATUS_UNREADABLE, "%s", error);
		process->shown = true;
	}
	return processes;
}

struct processes processes_read_side(const struct options *options, const char *path)
{
	struct options one = *options;
	struct processes processes;

	if (options->all)
		fatal(STATUS_USAGE, "diff compares one process of each run: name the two traces, "
				    "or choose a process of each run with --rank N");
	one.files = &path;
	one.file_count = 1;
	one.metric_name = NULL;
	one.metric = METRIC_CPU;
	processes = one.rank < 0 ? processes_read_named(&one) : processes_read(&one);
	warnings_check_device(&one, &processes);
	return processes;
}

void processes_free(struct processes *processes)
{
	for (size_t i = 0; i < processes->count; i++) {
		process_close(&processes->all[i]);
		free(processes->all[i].command);
		free(processes->all[i].path);
	}
	for (size_t i = 0; i < processes->warning_count; i++)
		free(processes->warnings[i]);
	free(processes->warnings);
	free(processes->all);
	categories_free(processes->categories);
}

/* Returns the root with the highest value that has a worst instance. 0: none. `all_sections`:
 * includes sections that are not steady-state steps. */
static uint32_t worst_root_in(const struct profile *profile, enum metric metric, bool all_sections)
{
	uint32_t best = 0;
	uint64_t begin_ns = 0;
	long double most = 0;

	for (uint32_t id = 1; id < profile->tree->count; id++) {
		const struct node *node = &profile->tree->nodes[id];
		long double value;

		if (node->parent || node->ran_elsewhere || !node->worst || !node->worst->found ||
			node->worst->value == 0 || node->kind == NODE_UNATTRIBUTED ||
			(node->outside && !all_sections) || id == profile->async_ranges)
			continue;
		value = node_metric_value(node, metric);
		if (!best || value > most ||
			(value == most &&
				(metric_is_peak(metric)
						? node->worst->begin_ns < begin_ns
						: string_table_compare(profile->texts, node->name,
							  profile->tree->nodes[best].name) < 0))) {
			best = id;
			begin_ns = node->worst->begin_ns;
			most = value;
		}
	}
	return best;
}

/* Returns the root whose worst instance is shown. 0: none. Programs allocate memory in their first
 * steps and then reuse it, so the steady-state steps may have no worst instance. A peak may be in
 * any section. */
static uint32_t worst_root(const struct profile *profile, enum metric metric)
{
	const uint32_t steady = worst_root_in(profile, metric, metric_is_peak(metric));

	return steady ? steady : worst_root_in(profile, metric, true);
}

/* Profiles the process again, with the children of the worst instance of `root`. */
static struct profile *build_critical(
	struct process *process, uint32_t root, const struct node_worst *worst)
{
	const struct profile_target target = { .stream = worst->stream,
		.node = root,
		.begin_ns = worst->begin_ns,
		.end_ns = worst->end_ns,
		.value = worst->value,
		.previous_tree = process->profile->tree };
	struct profile_options wanted = process->profile->options;
	struct profile *critical;

	wanted.metric = process->metric;
	wanted.pick_metric = false;
	wanted.target = &target;
	wanted.no_owners_and_delays = true;
	wanted.no_samples = true;
	wanted.no_timeline = process->metric != METRIC_IDLE;
	critical = profile_build(process->reader, process->texts, &wanted);
	critical->options.target = NULL;
	critical->options.no_samples = false;
	return critical;
}

const struct instance *process_critical(struct process *process)
{
	const uint32_t root = worst_root(process->profile, process->metric);
	const struct node_worst *worst = root ? process->profile->tree->nodes[root].worst : NULL;

	if (!worst)
		return NULL;
	if (!process->critical)
		process->critical = build_critical(process, root, worst);
	return process->critical->target;
}

bool process_has_records(const struct process *process)
{
	const struct profile *profile = process->profile;

	return profile->counts.records || profile->options.steps || profile->options.windows ||
	       process->timeline;
}

const struct profile *process_full_names_profile(struct process *process)
{
	struct profile_options wanted = process->profile->options;

	wanted.demangle = DEMANGLE_FULL;
	if (!process->profile->kernels->count)
		return process->profile;
	if (!process->full_names_profile)
		process->full_names_profile = profile_build(
			process->reader, process->texts, &wanted);
	return process->full_names_profile;
}

static struct symbols *process_symbols(struct process *process)
{
	const struct trace_module *module;

	if (process->symbols)
		return process->symbols;
	process->symbols = symbols_open();
	for (uint32_t i = 0; (module = reader_dictionary(process->reader, TRACE_MODULE, i)); i++)
		symbols_add(process->symbols, module);
	return process->symbols;
}

size_t process_symbol(
	struct process *process, uint64_t address, enum demangle_form form, char *out, size_t room)
{
	return symbols_print(process_symbols(process), address, form, out, room);
}

struct symbol process_find_symbol(struct process *process, uint64_t return_address)
{
	return symbols_find(process_symbols(process), return_address);
}
