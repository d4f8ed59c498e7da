/* SPDX-License-Identifier: MIT
 * Reads the requested traces and makes a profile of each: a program and its children.
 *
 * Shows the process with the most GPU time (if equal: with most events, then the first to start).
 * With --all every process is shown. Of a process that is not shown, only pid, rank, command, times
 * and counts are kept for its line. Its reader, profile and texts are freed (NULL).
 */
#ifndef PPERF_REPORT_RUN_PROCESS_H
#define PPERF_REPORT_RUN_PROCESS_H

#include "report/gpu/cupti_handover.h"
#include "report/gpu/work_categories.h"
#include "report/profile/profile.h"
#include "report/run/integrity.h"
#include "report/run/options.h"
#include "report/symbols/symbols.h"

struct process;

/* An instance that --instances shows. One of the two members is NULL. */
struct kept_instance {
	struct profile *profile;   /* profile->target is the instance, with its children */
	struct instance *instance; /* the instance, without children */
};

/* Who has an observer in the pass that makes the profile of a process. It must live until
 * process_read returns. */
struct process_join {
	void *context;
	/* Returns the observer, which has `restart`; NULL: none. Called when the steps are known.
	 * process->profile is that of profile_new, and is filled by the pass. */
	const struct profile_observer *(*begin)(
		void *context, const struct options *options, struct process *process);
	/* Called when process_read has made the profile, if there was an observer. */
	void (*end)(void *context, const struct profile *profile);
};

struct process {
	char *path;
	/* NULL: none. It is not called if the profile was kept (kept_process.h). */
	const struct process_join *join;
	struct trace_reader *reader;
	struct string_table *texts;
	/* What PPERF_SCHEDULE recorded. NULL: everything was recorded. */
	struct recording_windows *windows;
	const struct categories *categories; /* of all processes that were read together */
	struct handover_list *handovers;     /* when another client had CUPTI; NULL: never */
	/* NULL: not searched (--no-steps), or none were found. */
	struct steps *steps;
	struct timeline *timeline; /* NULL: no timed GPU work is known */
	struct profile *profile;
	struct integrity integrity;
	/* A second profile that keeps the worst instance's children. NULL: not made. */
	struct profile *critical;
	struct kept_instance *instances; /* of --instances */
	size_t instance_count, instance_room;
	struct tree *flat; /* one node per name, or per key of --by; NULL: not made */
	struct profile *usual_steps_profile; /* profile of its steady-state steps; NULL: not made */
	/* Profile with the full names of kernels. NULL: not made. */
	struct profile *full_names_profile;
	struct tree *extra_rows; /* extra rows of text output (tree_extra_rows.h); NULL: none */
	/* Data that views keep with the process (process_attach). NULL: none. */
	struct process_attachment *attachments;
	struct symbols *symbols; /* NULL: not opened yet */
	enum metric metric;      /* the order of rows: the requested one, else gpu or cpu */
	/* Total of `metric`: 100 % of percentages. 0: none (levels). */
	long double whole;
	uint32_t pid;
	int64_t rank; /* -1: none */
	uint64_t start_unix_ns, gpu_ns, events, wall_ns;
	char *command; /* any bytes, terminated; "" if not known */
	char rank_name[32];
	bool shown, simulated, complete;
};

struct processes {
	struct process *all; /* the shown ones first; others by start */
	size_t count, shown;
	struct categories *categories; /* rules for GPU work, of --categories or built in */
	char **warnings;               /* about traces that could not be read, for example */
	size_t warning_count, warning_room;
	size_t warnings_first; /* number of leading warnings that say that data are missing */
};

/* Finds the traces of the runs, reads them, and selects the ones to show. If a named file cannot be
 * read, the program ends. */
struct processes processes_read(const struct options *options);
/* As processes_read. `join` has an observer if the run has one process, which is then shown. */
struct processes processes_read_with(
	const struct options *options, const struct process_join *join);
/* Reads only the named traces. All of them are shown. */
struct processes processes_read_named(const struct options *options);
/* Reads one side of a comparison, by METRIC_CPU, as `all[0]`. It is the file `path`, or with
 * --rank the process of that rank in its run. With --all the program ends, because one process
 * is compared. */
struct processes processes_read_side(const struct options *options, const char *path);
/* These four are for a view that reads one process at a time. Before the first of them, `path` and
 * `categories` are set, maybe `join`, and all other members are zero. */

/* Opens the trace, and fills what is known without a profile. On failure returns false and fills
 * `error`. */
bool process_open(struct process *process, char *error);
/* Opens the trace and makes its profile. On failure returns false and fills `error`. */
bool process_read(struct process *process, const struct options *options, char *error);
/* Returns the options of a profile of an open process. */
struct profile_options process_profile_options(
	const struct process *process, const struct options *options);
/* Frees reader, profile and texts. They become NULL. The other members are kept. */
void process_close(struct process *process);

/* Compares two struct process for qsort: by rank if both have one, else by start, pid and path. */
int process_compare_start(const void *a, const void *b);

/* Makes the profile again by another metric (`counter`: the name, for METRIC_USER). Nodes keep
 * their numbers. The critical tree, the trees `flat` and `extra_rows`, the profile with full names
 * and attached data are freed, and made again when needed. */
void process_measure(struct process *process, enum metric metric, const char *counter);
void processes_free(struct processes *processes);

void processes_warn(struct processes *processes, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Moves the last warning to the first ones, which say that data are missing. These are printed
 * before the rows, and with CSV to standard error. */
void processes_raise_warning(struct processes *processes);

/* Returns what a process is called: `rank N`, or its command if it has no rank. */
const char *process_name(const struct process *process);

/* Returns a META value. trace_text.known is false if the trace does not have `key`. */
struct trace_text process_meta(const struct process *process, const char *key);
/* Returns a META value that is a number of at most 11 digits; -1: the trace does not have it. */
int64_t process_meta_number(const struct process *process, const char *key);
/* Returns true for files without the allocator's total: the import adds levels of tensors up from
 * the lowest possible one. */
bool process_tensor_levels_are_least(const struct process *process);
/* Returns the estimated time that recording the events of the whole trace took: their number times
 * `*event_ns`, what the recorder measured for one at the end of the program. Returns 0 if it did
 * not, or if only a part of the trace is profiled. */
uint64_t process_recording_ns(const struct process *process, uint64_t *event_ns);
/* Returns the record of the GPU with the number `device`. NULL: the trace does not describe it. */
const struct trace_device *process_device(const struct process *process, uint32_t device);
bool device_is_simulated(struct trace_reader *reader, const struct trace_device *device);

/* Attaches `data` to the process under `key`, an address that only the caller uses. processes_free,
 * process_measure and process_detach_all pass it to `release`. */
void process_attach(
	struct process *process, const void *key, void *data, void (*release)(void *data));
/* Returns the data attached under `key`, or NULL. */
void *process_attached(const struct process *process, const void *key);
/* Releases all attached data. */
void process_detach_all(struct process *process);

/* Returns the critical tree of process->metric, made at the first call. NULL: no range has a value
 * of the metric. */
const struct instance *process_critical(struct process *process);

/* Returns whether the trace has CUDA calls, tensor events or CUPTI's records. Without them, a pass
 * that observes them is not needed. Always true if only a part of the trace is profiled. While the
 * profile is not filled, only known if there is timed GPU work. */
bool process_has_records(const struct process *process);

/* Returns the profile with full kernel names, made at the first call. */
const struct profile *process_full_names_profile(struct process *process);

/* Writes the function at `address` of this process, like symbols_print. */
size_t process_symbol(
	struct process *process, uint64_t address, enum demangle_form form, char *out, size_t room);
/* Returns the function of a return address of this process, like symbols_find. */
struct symbol process_find_symbol(struct process *process, uint64_t return_address);

#endif
