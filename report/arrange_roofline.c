/* SPDX-License-Identifier: MIT
 * arrange_roofline.c: how near operators, copies and sets come to what the GPU could do at most. Of an operator FLOPs and
 * bytes are modelled by the sizes of its inputs (op_cost.h); the time is that of the kernels that it launched, itself
 * and in what it called. What a graph replayed, and whatever has no formula, is in the row of what is not known: the
 * rows of a device have each nanosecond of its work once.
 */
#include "report/activity.h"
#include "report/command.h"
#include "report/device_peaks.h"
#include "report/fatal.h"
#include "report/number.h"
#include "report/op_cost.h"
#include "report/tally.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_COST UINT32_MAX

/* An operator with its inputs, wherever it stands; or copies or sets of one name; or a kernel without a figure. */
struct subject {
	struct op_cost cost;
	uint64_t calls, launches, works, untimed, ns;
	uint64_t bytes;     /* of copies and sets: all of them */
	uint32_t name;      /* text */
	uint32_t shapes;    /* text; of an operator */
	uint32_t kernel;    /* text: what it launched, if that is one */
	uint32_t node;      /* of the tree: who asked for the first */
	bool several, narrow; /* kernels; one says that it makes TF32 of what it multiplies */
	bool assumed;       /* the type of its inputs is */
};

struct subjects {
	struct subject *all;
	size_t count, room;
	uint32_t *slots;    /* by text: index + 1 */
	size_t slot_room;
};

struct device_work {
	struct subjects operators, moves, unknown; /* by name and inputs; by name; by kernel */
	uint64_t ns, works;
	uint32_t device;
};

/* An operator that is open on a thread, and has launched something. */
struct open_operator {
	uint32_t place, tid, device;
	uint64_t launches;
};

struct place_cost {
	uint32_t at;        /* the outermost place around it with a figure, or itself; NO_COST; 0: not looked at */
	uint32_t key;       /* of that place: text of name and inputs */
	struct op_cost cost;
	bool assumed;
};

struct roofline {
	struct process *process;
	const struct options *options;
	struct device_work *devices;
	size_t device_count, device_room;
	struct place_cost *places;
	size_t place_room;
	struct open_operator *open;
	size_t open_count, open_room;
};

static struct device_work *device_of(struct roofline *roofline, uint32_t device)
{
	for (size_t i = 0; i < roofline->device_count; i++)
		if (roofline->devices[i].device == device)
			return &roofline->devices[i];
	grow(&roofline->devices, &roofline->device_room, roofline->device_count + 1, sizeof *roofline->devices);
	roofline->devices[roofline->device_count] = (struct device_work){ .device = device };
	return &roofline->devices[roofline->device_count++];
}

static struct subject *subject_of(struct subjects *subjects, uint32_t text)
{
	grow(&subjects->slots, &subjects->slot_room, (size_t)text + 1, sizeof *subjects->slots);
	if (!subjects->slots[text]) {
		grow(&subjects->all, &subjects->room, subjects->count + 1, sizeof *subjects->all);
		subjects->all[subjects->count] = (struct subject){ .name = text };
		subjects->slots[text] = (uint32_t)++subjects->count;
	}
	return &subjects->all[subjects->slots[text] - 1];
}

/* ---- which operator it was ---- */

static bool look_up(struct roofline *roofline, uint32_t place, struct place_cost *found)
{
	struct trace_reader *reader = roofline->process->reader;
	const struct trace_place *at = reader_place(reader, place);
	const struct trace_text name = reader_name(reader, at->name), given = reader_name(reader, at->detail);
	struct op_inputs inputs;
	char *both;

	if (at->kind != TRACE_NODE_OP || !given.known || !op_inputs_read(&inputs, given.bytes, given.length) ||
		!op_cost(&found->cost, name.bytes, name.length, &inputs, roofline->options->assumed))
		return false;
	found->assumed = !inputs.typed && found->cost.element != ELEMENT_UNKNOWN;
	both = need((size_t)name.length + given.length + 2);
	memcpy(both, name.bytes, name.length);
	both[name.length] = '\t';
	memcpy(both + name.length + 1, given.bytes, given.length);
	found->key = text_id(roofline->process->texts, both, (size_t)name.length + 1 + given.length);
	free(both);
	return true;
}

/* Whose the work that was launched there is; NULL: nobody's with a figure. */
static const struct place_cost *cost_at(struct roofline *roofline, uint32_t place)
{
	uint32_t outermost = NO_COST;

	grow(&roofline->places, &roofline->place_room, (size_t)place + 1, sizeof *roofline->places);
	if (!roofline->places[place].at) {
		for (uint32_t at = place; at; at = reader_place(roofline->process->reader, at)->parent) {
			struct place_cost found = { .at = at };

			if (!look_up(roofline, at, &found))
				continue;
			roofline->places[at].key = found.key;
			roofline->places[at].cost = found.cost;
			roofline->places[at].assumed = found.assumed;
			outermost = at;
		}
		roofline->places[place].at = outermost;
	}
	return roofline->places[place].at == NO_COST ? NULL : &roofline->places[roofline->places[place].at];
}

static uint32_t name_of_kernel(struct roofline *roofline, const struct fold_seen_work *work)
{
	return work->name ? work->name : text_id(roofline->process->texts, "(not named)", 11);
}

/* ---- what the fold tells ---- */

static void begins(void *context)
{
	struct roofline *roofline = context;

	for (size_t i = 0; i < roofline->device_count; i++) {
		struct subjects *all[] = { &roofline->devices[i].operators, &roofline->devices[i].moves,
			&roofline->devices[i].unknown };

		for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
			free(all[k]->all);
			free(all[k]->slots);
		}
	}
	roofline->device_count = roofline->open_count = 0;
}

static void call(void *context, const struct fold_seen_call *seen)
{
	struct roofline *roofline = context;
	const struct trace_call *record = seen->event->record;
	const struct place_cost *cost;
	struct open_operator *open;
	size_t i = 0;

	if (seen->event->kind != TRACE_LAUNCH || !seen->counts || record->result || record->head.flags & TRACE_CALL_CAPTURED)
		return;
	cost = cost_at(roofline, seen->event->node);
	if (!cost)
		return;
	open = roofline->open;
	while (i < roofline->open_count &&
		(open[i].tid != seen->event->stream->tid || open[i].place != (uint32_t)(cost - roofline->places)))
		i++;
	if (i == roofline->open_count) {
		grow(&roofline->open, &roofline->open_room, i + 1, sizeof *roofline->open);
		roofline->open[roofline->open_count++] = (struct open_operator){ .place = (uint32_t)(cost - roofline->places),
			.tid = seen->event->stream->tid,
			.device = record->device };
	}
	roofline->open[i].launches++;
}

/* A call of the operator is over. One that launched nothing computed on the CPU, or its work is a graph's by now. */
static void part(void *context, const struct fold_part *seen)
{
	struct roofline *roofline = context;

	for (size_t i = 0; i < roofline->open_count; i++) {
		const struct open_operator *open = &roofline->open[i];
		struct subject *subject;

		if (open->place != seen->place || open->tid != seen->thread->tid)
			continue;
		subject = subject_of(
			&device_of(roofline, open->device)->operators, roofline->places[open->place].key);
		subject->calls++;
		subject->launches += open->launches;
		roofline->open[i] = roofline->open[--roofline->open_count];
		return;
	}
}

static bool says_tf32(struct roofline *roofline, const struct trace_gpu *gpu)
{
	const struct trace_text name = reader_name(roofline->process->reader, ((const struct trace_kernel *)gpu)->name);

	return memmem(name.bytes, name.length, "tf32", 4) != NULL;
}

static void add_kernel(struct roofline *roofline, struct subject *subject, const struct place_cost *cost,
	const struct fold_seen_work *work)
{
	subject->cost = cost->cost;
	subject->assumed = cost->assumed;
	subject->several |= subject->works && subject->kernel != work->name;
	subject->kernel = work->name;
	if (cost->cost.matrix && cost->cost.element == ELEMENT_FP32 && !subject->narrow)
		subject->narrow = says_tf32(roofline, work->gpu);
}

/* Within a GPU each byte is read and written. */
static uint64_t moved(const struct trace_gpu_copy *copy)
{
	const bool within = copy->gpu.head.kind == TRACE_GPU_COPY && copy->copy_kind == TRACE_COPY_DTOD;

	return copy->bytes << within;
}

static void work(void *context, const struct fold_seen_work *seen)
{
	struct roofline *roofline = context;
	const struct trace_gpu *gpu = seen->gpu;
	const bool kernel = gpu->head.kind == TRACE_KERNEL, own = seen->launch && !gpu->graph_node && !seen->launch->graph_node;
	const struct place_cost *cost = kernel && own ? cost_at(roofline, seen->launch->place) : NULL;
	struct device_work *device;
	struct subject *subject;
	const uint64_t ns = seen->timed && gpu->end_ns > gpu->start_ns ? gpu->end_ns - gpu->start_ns : 0;

	if (!seen->counts)
		return;
	device = device_of(roofline, gpu->device);
	subject = subject_of(cost ? &device->operators : kernel ? &device->unknown : &device->moves,
		cost ? cost->key : name_of_kernel(roofline, seen));
	if (cost)
		add_kernel(roofline, subject, cost, seen);
	else if (!kernel)
		subject->bytes += moved((const struct trace_gpu_copy *)gpu);
	if (!subject->works)
		subject->node = seen->owner;
	subject->works++;
	subject->untimed += !seen->timed;
	subject->ns += ns;
	device->ns += ns;
	device->works++;
}

/* Calls of which the trace does not say on what GPU: that which has the work, if it is one. */
static void adopt(struct roofline *roofline, const struct subjects *from, uint32_t text)
{
	const struct subject *calls = &from->all[from->slots[text] - 1];
	struct subject *found = NULL;

	for (size_t i = 0; i < roofline->device_count; i++) {
		struct subjects *operators = &roofline->devices[i].operators;

		if (operators == from || text >= operators->slot_room || !operators->slots[text])
			continue;
		if (found)
			return;
		found = &operators->all[operators->slots[text] - 1];
	}
	if (!found)
		return;
	found->calls += calls->calls;
	found->launches += calls->launches;
}

static void adopt_all(struct roofline *roofline)
{
	const struct subjects *from = &device_of(roofline, ACTIVITY_NO_DEVICE)->operators;

	for (uint32_t text = 0; text < from->slot_room; text++)
		if (from->slots[text])
			adopt(roofline, from, text);
}

/* ---- rows ---- */

struct figures {
	uint64_t flops, bytes;
	bool has_flops, has_bytes;
};

/* Each call has launched what is timed, and all of it. */
static bool is_whole(const struct subject *subject)
{
	return subject->calls && subject->launches == subject->works && !subject->untimed && subject->ns;
}

static struct figures figures_of(const struct subject *subject)
{
	struct figures figures = { .flops = subject->cost.flops,
		.bytes = subject->cost.bytes,
		.has_flops = subject->cost.has_flops,
		.has_bytes = subject->cost.has_bytes };

	figures.has_flops &= !__builtin_mul_overflow(figures.flops, subject->calls, &figures.flops);
	figures.has_bytes &= !__builtin_mul_overflow(figures.bytes, subject->calls, &figures.bytes);
	if (!is_whole(subject))
		figures.has_flops = figures.has_bytes = false;
	return figures;
}

static uint64_t rate(uint64_t amount, uint64_t ns)
{
	return number_whole((long double)amount * 1e9L / (long double)ns);
}

/* The roof is the lower one of what the GPU computes and what it can fetch for that; nothing to compute: what it moves. */
static void tell_roof(struct tally *tally, const struct figures *figures, uint64_t ns, double flops, double bytes)
{
	const double moving = figures->has_bytes && bytes > 0 ? (double)figures->bytes / bytes : -1,
		     computing = !figures->has_flops ? 0 : flops > 0 ? (double)figures->flops / flops : -1;

	if (moving < 0 || computing < 0 || moving + computing <= 0)
		return;
	tally_words(tally, "roof", computing > moving ? "compute" : "memory");
	tally_real(tally, "roof_share", (computing > moving ? computing : moving) * 1e9 / (double)ns);
}

static void tell_figures(
	struct tally *tally, const struct figures *figures, uint64_t ns, const struct peaks *peaks, double flops)
{
	if (!ns)
		return;
	if (figures->has_flops) {
		tally_unsigned(tally, "flops", figures->flops);
		tally_unsigned(tally, "flops_per_s", rate(figures->flops, ns));
	}
	if (figures->has_bytes) {
		tally_unsigned(tally, "bytes", figures->bytes);
		tally_unsigned(tally, "bytes_per_s", rate(figures->bytes, ns));
	}
	if (figures->has_flops && figures->has_bytes && figures->bytes)
		tally_real(tally, "intensity", (double)figures->flops / (double)figures->bytes);
	if (flops > 0 && figures->has_flops)
		tally_unsigned(tally, "peak_flops_per_s", (uint64_t)flops);
	tell_roof(tally, figures, ns, flops, peaks->bytes);
}

static struct tally *tell(struct process *process, const struct subject *subject, const struct device_work *device,
	const char *kind)
{
	struct tally *tally = tally_new(process, subject->node);

	tally_words(tally, "kind", kind);
	tally_unsigned(tally, "device", device->device);
	tally_unsigned(tally, "gpu_total_ns", subject->ns);
	tally_share(tally, "share", subject->ns, device->ns);
	tally_unsigned(tally, "gpu_calls", subject->works);
	tally_unsigned(tally, "untimed", subject->untimed);
	return tally;
}

/* `aten::mm  [[2, 3], [3, 4]]` */
static void name_operator(struct tally *tally, struct text key)
{
	const size_t name = op_inputs_shapes(key.bytes, key.length),
		     shapes = op_inputs_shapes(key.bytes + name + 1, key.length - name - 1);
	char *both = need(name + shapes + 3);

	memcpy(both, key.bytes, name);
	memcpy(both + name, "  ", 2);
	memcpy(both + name + 2, key.bytes + name + 1, shapes);
	tally_name(tally, both, name + 2 + shapes);
	free(both);
}

static struct tally *tell_operator(struct process *process, const struct subject *subject,
	const struct device_work *device, const struct peaks *peaks)
{
	struct tally *tally = tell(process, subject, device, "op");
	const struct figures figures = figures_of(subject);
	const struct text kernel = text_of(process->texts, subject->kernel);
	const enum element element = subject->narrow ? ELEMENT_TF32 : subject->cost.element;

	name_operator(tally, text_of(process->texts, subject->name));
	tally_unsigned(tally, "calls", subject->calls);
	if (!subject->several && kernel.length)
		tally_text(tally, "kernel", kernel.bytes, kernel.length);
	if (element != ELEMENT_UNKNOWN)
		tally_words(tally, "element_type", element_name(element));
	if (figures.has_flops || figures.has_bytes)
		tally_words(tally, "basis", subject->assumed ? "modelled, type assumed" : subject->cost.recorded ? "recorded" : "modelled");
	tell_figures(tally, &figures, subject->ns, peaks, peaks_flops(peaks, element, subject->cost.matrix));
	return tally;
}

/* Copies between memories of their own go over what links these, and have no roof here. */
static struct tally *tell_move(struct process *process, const struct subject *subject,
	const struct device_work *device, const struct peaks *peaks)
{
	const struct text name = text_of(process->texts, subject->name);
	const bool set = name.length >= 6 && !memcmp(name.bytes, "memset", 6),
		   within = name.length >= 4 && !memcmp(name.bytes + name.length - 4, "DtoD", 4);
	struct tally *tally = tell(process, subject, device, set ? "memset" : "memcpy");
	const struct figures figures = { .bytes = subject->bytes, .has_bytes = subject->bytes && !subject->untimed };
	const struct peaks none = { .bytes = 0 };

	tally_name(tally, name.bytes, name.length);
	tally_unsigned(tally, "calls", subject->works);
	if (figures.has_bytes)
		tally_words(tally, "basis", "measured");
	tell_figures(tally, &figures, subject->ns, set || within ? peaks : &none, 0);
	return tally;
}

/* What of its time is behind figures. */
static uint64_t known_ns(const struct device_work *device)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < device->operators.count; i++) {
		const struct figures figures = figures_of(&device->operators.all[i]);

		ns += figures.has_flops || figures.has_bytes ? device->operators.all[i].ns : 0;
	}
	for (size_t i = 0; i < device->moves.count; i++)
		ns += device->moves.all[i].bytes ? device->moves.all[i].ns : 0;
	return ns;
}

static void add_device_row(
	struct process *process, struct rows *rows, const struct device_work *device, const struct peaks *peaks)
{
	const struct text name = peaks_device_name(process, device->device);
	struct tally *tally = tally_new(process, 0);

	tally_name_format(tally, "device %u%s%.*s", device->device, name.length ? " " : "",
		(int)(name.length < 128 ? name.length : 128), name.bytes);
	tally_words(tally, "kind", "device");
	tally_unsigned(tally, "device", device->device);
	tally_unsigned(tally, "gpu_total_ns", device->ns);
	tally_unsigned(tally, "gpu_calls", device->works);
	tally_share(tally, "known_share", known_ns(device), device->ns);
	if (peaks->from != PEAKS_NONE)
		tally_words(tally, "basis", peaks_origin(peaks));
	if (peaks->flops[PEAK_FP32] > 0)
		tally_unsigned(tally, "peak_flops_per_s", (uint64_t)peaks->flops[PEAK_FP32]);
	if (peaks->bytes > 0)
		tally_unsigned(tally, "peak_bytes_per_s", (uint64_t)peaks->bytes);
	rows_add(rows, &tally->row);
}

static void add_row(struct rows *rows, struct tally *tally, uint32_t parent, uint32_t depth)
{
	tally->row.parent = parent;
	tally->row.depth = depth;
	rows_add(rows, &tally->row);
}

static void add_unknown(const struct options *options, struct process *process, struct rows *rows,
	struct device_work *device, uint32_t parent)
{
	const struct column *sort = view_sort(options, process);
	struct subject all = { .ns = 0 };
	struct tally *tally;
	uint32_t own;
	size_t first;

	for (size_t i = 0; i < device->unknown.count; i++) {
		all.ns += device->unknown.all[i].ns;
		all.works += device->unknown.all[i].works;
		all.untimed += device->unknown.all[i].untimed;
	}
	if (!all.works)
		return;
	tally = tell(process, &all, device, "unknown");
	tally_name_format(tally, "(FLOPs and bytes unknown)");
	own = (uint32_t)rows->count;
	add_row(rows, tally, parent, 1);
	first = rows->count;
	for (size_t i = 0; i < device->unknown.count; i++) {
		const struct subject *subject = &device->unknown.all[i];
		const struct text name = text_of(process->texts, subject->name);

		tally = tell(process, subject, device, "kernel");
		tally_name(tally, name.bytes, name.length);
		add_row(rows, tally, own, 2);
	}
	rows_sort(rows->rows + first, rows->count - first, sort);
	if (options->depth < 3) {
		rows->deep += rows->count - first;
		rows->count = first;
	}
	rows_prune(rows, first, sort, view_min_percent(options), view_top(options));
}

static void add_rows(const struct options *options, struct process *process, struct rows *rows,
	struct device_work *device, const struct peaks_table *table)
{
	const struct column *sort = view_sort(options, process);
	const uint32_t parent = (uint32_t)rows->count;
	const struct peaks peaks = peaks_of_process(process, table, device->device);
	size_t first;

	add_device_row(process, rows, device, &peaks);
	if (options->depth < 2)
		return;
	first = rows->count;
	for (size_t i = 0; i < device->operators.count; i++)
		if (device->operators.all[i].works)
			add_row(rows, tell_operator(process, &device->operators.all[i], device, &peaks), parent, 1);
	for (size_t i = 0; i < device->moves.count; i++)
		add_row(rows, tell_move(process, &device->moves.all[i], device, &peaks), parent, 1);
	rows_sort(rows->rows + first, rows->count - first, sort);
	rows_prune(rows, first, sort, view_min_percent(options), view_top(options));
	add_unknown(options, process, rows, device, parent);
}

/* What the trace would need for more figures, and how it comes by it. */
static void tell_what_lacks(const struct options *options, struct processes *processes, const struct process *process)
{
	struct trace_reader *reader = process->reader;
	const bool imported = process_meta(process, "import.format").known;
	uint32_t operators = 0, sized = 0, typed = 0;
	struct command command = { .ascii = true };

	for (uint32_t id = 1; id < reader_nodes(reader); id++) {
		const struct trace_place *place = reader_place(reader, id);
		const struct trace_text given = reader_name(reader, place->detail);
		struct op_inputs inputs;

		operators += place->kind == TRACE_NODE_OP;
		if (place->kind != TRACE_NODE_OP || !given.known || !op_inputs_read(&inputs, given.bytes, given.length))
			continue;
		sized++;
		typed += inputs.typed;
	}
	if (operators && !sized)
		processes_warn(processes, "%s: sizes of operators' inputs are not in this trace, so none has FLOPs or bytes; record it with %s",
			process->path, imported ? "record_shapes=True" : "PPERF_SHAPES=1");
	if (!sized || typed || options->assumed != ELEMENT_UNKNOWN)
		return;
	command_add(&command, "pperf-report roofline");
	command_file(&command, process->path);
	processes_warn(processes, "%s: types of tensors are not in this trace, so no operator has bytes or a roof; say what they are: %s --assume-type fp32",
		process->path, command.text);
	free(command.text);
}

static int by_device(const void *a, const void *b)
{
	const struct device_work *left = a, *right = b;

	return (left->device > right->device) - (left->device < right->device);
}

static void arrange(const struct options *options, struct processes *processes, struct process *process, struct rows *rows,
	const struct peaks_table *table)
{
	struct roofline roofline = { .process = process, .options = options };
	const struct fold_observer observer = {
		.context = &roofline, .begins = begins, .call = call, .part = part, .work = work
	};
	struct fold_options fold = process->fold->options;

	fold.observer = &observer;
	fold.pick_metric = false;
	fold.no_owners = true;
	fold.no_timeline = true;
	if (process_has_records(process))
		fold_free(fold_run(process->reader, process->texts, &fold));
	adopt_all(&roofline);
	qsort(roofline.devices, roofline.device_count, sizeof *roofline.devices, by_device);
	for (size_t i = 0; i < roofline.device_count; i++)
		if (roofline.devices[i].works)
			add_rows(options, process, rows, &roofline.devices[i], table);
	if (rows->count)
		tell_what_lacks(options, processes, process);
	else
		processes_warn(processes, "%s: no work of a GPU is in this trace; pperf-report info says which of its sources were on",
			process->path);
	begins(&roofline);
	free(roofline.devices);
	free(roofline.places);
	free(roofline.open);
}

void arrange_roofline(const struct options *options, struct processes *processes, struct rows *rows)
{
	struct peaks_table *table = peaks_read(options->peaks);

	for (size_t i = 0; i < processes->shown; i++)
		arrange(options, processes, &processes->all[i], rows, table);
	rows->told = rows->count == 0;
	peaks_free(table);
}
