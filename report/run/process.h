/* SPDX-License-Identifier: MIT
 * process.h: the traces that were asked for, each folded: a program and its children.
 *
 * The one shown is the one that did most (most GPU time, then most events, then the earliest), or with --all each. Of
 * the others a line is left; their readers, folds and texts are gone (NULL).
 */
#ifndef PPERF_REPORT_RUN_PROCESS_H
#define PPERF_REPORT_RUN_PROCESS_H

#include "report/gpu/cupti_handover.h"
#include "report/profile/profile.h"
#include "report/run/integrity.h"
#include "report/run/options.h"
#include "report/symbols/symbols.h"

/* One instance that is shown: with its children, or alone. */
struct kept_instance {
	struct profile *profile;   /* whose target it is; NULL: it is */
	struct instance *instance; /* alone; NULL */
};

struct process {
	char *path;
	struct trace_reader *reader;
	struct string_table *texts;
	struct recording_windows
		*windows; /* what PPERF_SCHEDULE had recorded; NULL: everything was */
	struct handover_list *handovers; /* when CUPTI was another client's; NULL: never */
	struct steps *steps; /* NULL: nobody looked for them (--no-steps), or there can be none */
	struct timeline *timeline; /* NULL: nothing is known to have been timed on a GPU */
	struct profile *profile;
	struct integrity integrity;
	struct profile *
		critical; /* a second fold with the worst instance's children kept; NULL: not made */
	struct kept_instance *instances; /* of --instances */
	size_t instance_count, instance_room;
	struct tree *flat; /* one node a name, or whatever --by asks for; NULL: not made */
	struct profile *usual_steps_profile; /* a fold of its usual steps alone; NULL: not made */
	struct profile *
		full_names_profile; /* a fold in which kernels have their full names; NULL: not made */
	struct tree *extra_rows;    /* rows of text alone (asides.h); NULL: none */
	struct process_attachment
		*attachments; /* what views keep with the process (process_attach); NULL: nothing */
	struct symbols *symbols; /* NULL: not asked for yet */
	enum metric metric;      /* what it is ordered by: what was asked for, else gpu or cpu */
	long double whole; /* of that metric: what shares are shares of; 0: it has none (levels) */
	uint32_t pid;
	int64_t rank; /* -1: none */
	uint64_t start_unix_ns, gpu_ns, events, wall_ns;
	char *command; /* any bytes, terminated; "" if not known */
	bool shown, simulated, complete;
};

struct processes {
	struct process *all; /* those shown first; the rest by start */
	size_t count, shown;
	char **warnings; /* of traces that could not be read, and the like */
	size_t warning_count, warning_room;
};

/* Finds the traces of the runs, reads and chooses. A file that was named and cannot be read ends the program. */
struct processes processes_read(const struct options *options);
/* Only those that were named, all of them shown. */
struct processes processes_read_named(const struct options *options);
/* One side of a comparison, by METRIC_CPU, the first of `all`: the file that was named, or of its run the process with
 * --rank. Of several there is no comparison: --all ends the program. */
struct processes processes_read_side(const struct options *options, const char *path);
/* Folds it once more, by another metric (counter: the name of METRIC_USER's): the places keep their numbers. The rest of
 * what was made of the first fold is made anew when it is asked for. */
void process_measure(struct process *process, enum metric metric, const char *counter);
void processes_free(struct processes *processes);

void processes_warn(struct processes *processes, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A fact about the process; not known: not given. */
struct trace_text process_meta(const struct process *process, const char *key);
/* The GPU of that number, NULL if the trace does not describe it. */
const struct trace_device *process_device(const struct process *process, uint32_t device);
bool device_is_simulated(struct trace_reader *reader, const struct trace_device *device);

/* Keeps `data` with the process under `key`, an address that its owner alone uses, until process_release or processes_free,
 * which pass it to `release`. */
void process_attach(
	struct process *process, const void *key, void *data, void (*release)(void *data));
/* Returns what was attached under `key`, or NULL. */
void *process_attached(const struct process *process, const void *key);
/* Releases all that is attached. */
void process_detach_all(struct process *process);

/* The critical tree of its metric, found at the first call: NULL if no range has anything of it. */
const struct instance *process_critical(struct process *process);

/* Whether calls, tensors or what CUPTI told are in the trace; without them nobody who waits for such has to read it once
 * more. Of parts of a trace always true. */
bool process_has_records(const struct process *process);

/* The fold with full names, made at the first call. */
const struct profile *process_named(struct process *process);

/* Returns the function of an address of this process, as symbols_print does. */
size_t process_symbol(
	struct process *process, uint64_t address, enum demangle_form form, char *out, size_t room);

#endif
