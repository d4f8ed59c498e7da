/* SPDX-License-Identifier: MIT
 *
 * Computes how much of a GPU's copies and communication was hidden behind computation: by device,
 * and by the node that launched them. Collectives of one node are divided by the size of their
 * messages, because the last bucket of a step is seldom hidden and the others are.
 */
#include "report/views/overlap.h"
#include "report/base/compare.h"
#include "report/analysis/event_sweep.h"
#include "report/base/alloc.h"
#include "report/stats/percentiles.h"
#include "report/table/computed_row.h"
#include "report/text/format_number.h"
#include <stdlib.h>
#include <string.h>

/* Communication and copies can be hidden; computation hides them. Memsets are part of computation,
 * and are also counted on their own. */
enum work_class { COMMUNICATION, COPIES, COMPUTATION, MEMSETS, WORK_CLASS_COUNT };

static const struct {
	const char *name, *kind;
} work_classes[WORK_CLASS_COUNT] = { { "communication", "communication" }, { "copies", "copies" },
	{ "computation", "computation" }, { "memsets", "memsets" } };

/* Sizes of messages by node that have a row; further ones have none. */
#define SIZES_MAX 4096u

struct overlap_share {
	struct active_time busy;
	/* hidden_ns: hidden so far. hiding_at_begin_ns: busy time of what hides it, when it last
	 * became active. */
	uint64_t hidden_ns, hiding_at_begin_ns;
	uint64_t operations, bytes, sum_ns;
	/* Of communication: the time of operations whose size is known; and of those whose bus
	 * bandwidth is, with their bytes. */
	uint64_t sized_ns, bus_ns, bus_bytes;
};

/* The collectives of one node that have messages of one size. */
struct sized_collectives {
	uint32_t owner;
	uint64_t message_bytes, min_ns, max_ns;
	struct overlap_share share;
	struct percentiles durations;
};

struct overlap_device {
	uint32_t device;
	struct active_time busy, kernels; /* kernels: computation or communication */
	struct overlap_share all[WORK_CLASS_COUNT], *owners[WORK_CLASS_COUNT];
	size_t room[WORK_CLASS_COUNT];
	uint64_t operations, sum_ns;
	struct sized_collectives *sizes;
	size_t size_count, size_room;
};

struct overlap {
	struct overlap_device devices[TIMELINE_DEVICES];
	size_t count;
	struct percentiles_budget budget;
};

static enum work_class work_class_of(const struct activity *work)
{
	return work->kind == ACTIVITY_COPY     ? COPIES
	       : work->kind == ACTIVITY_MEMSET ? MEMSETS
	       : work->communicates            ? COMMUNICATION
					       : COMPUTATION;
}

/* Returns the busy time of what hides work of `work_class`. Computation hides communication, either
 * of them hides copies, and nothing hides computation. */
static uint64_t hiding_ns(
	const struct overlap_device *device, enum work_class work_class, uint64_t at_ns)
{
	return work_class == COMMUNICATION
		       ? active_time_total(&device->all[COMPUTATION].busy, at_ns)
	       : work_class == COPIES ? active_time_total(&device->kernels, at_ns)
				      : 0;
}

static void begin_share(struct overlap_share *share, const struct activity *work,
	uint64_t hiding_so_far_ns, uint64_t at_ns)
{
	if (!share->busy.active)
		share->hiding_at_begin_ns = hiding_so_far_ns;
	active_time_begin(&share->busy, at_ns);
	share->operations++;
	share->bytes += work->bytes + work->message_bytes;
	share->sum_ns += work->duration_ns;
	share->sized_ns += work->message_bytes || work->bytes ? work->duration_ns : 0;
	share->bus_ns += work->bus_bytes ? work->duration_ns : 0;
	share->bus_bytes += work->bus_bytes;
}

static void end_share(struct overlap_share *share, uint64_t hiding_so_far_ns, uint64_t at_ns)
{
	if (active_time_end(&share->busy, at_ns))
		share->hidden_ns += hiding_so_far_ns - share->hiding_at_begin_ns;
}

static struct sized_collectives *sized_collectives_at(
	struct overlap_device *device, const struct activity *work)
{
	struct sized_collectives *one = device->sizes, *end = one + device->size_count;

	while (one < end &&
		(one->owner != work->owner || one->message_bytes != work->message_bytes))
		one++;
	if (one < end)
		return one;
	ARRAY_GROW(device->sizes, device->size_room, device->size_count + 1);
	one = &device->sizes[device->size_count++];
	one->owner = work->owner;
	one->message_bytes = work->message_bytes;
	one->min_ns = UINT64_MAX;
	return one;
}

/* Begins a collective among those of its size; 0: those whose size is not recorded. Returns their
 * number, from 1 on; 0: there are too many sizes. */
static uint32_t begin_sized(struct overlap *overlap, struct overlap_device *device,
	const struct activity *work, uint64_t hiding_so_far_ns, uint64_t at_ns)
{
	struct sized_collectives *one;

	if (!work->communicates || device->size_count >= SIZES_MAX)
		return 0;
	one = sized_collectives_at(device, work);
	one->min_ns = min_u64(one->min_ns, work->duration_ns);
	one->max_ns = max_u64(one->max_ns, work->duration_ns);
	percentiles_add(&one->durations, work->duration_ns, &overlap->budget);
	begin_share(&one->share, work, hiding_so_far_ns, at_ns);
	return (uint32_t)(one - device->sizes) + 1;
}

static void overlap_begin_work(
	void *context, const struct activity *work, uint64_t at_ns, struct sweep_mark *mark)
{
	struct overlap *overlap = context;
	struct overlap_device *device = device_slot(
		overlap->devices, &overlap->count, sizeof *overlap->devices, work->device);
	const enum work_class work_class = work_class_of(work);
	const uint64_t hiding_so_far_ns = hiding_ns(device, work_class, at_ns);
	const uint32_t size = begin_sized(overlap, device, work, hiding_so_far_ns, at_ns);

	*mark = (struct sweep_mark){ (uint32_t)(device - overlap->devices),
		(uint32_t)work_class + size * WORK_CLASS_COUNT, work->owner };
	ARRAY_GROW(device->owners[work_class], device->room[work_class], (size_t)work->owner + 1);
	begin_share(&device->all[work_class], work, hiding_so_far_ns, at_ns);
	begin_share(&device->owners[work_class][work->owner], work, hiding_so_far_ns, at_ns);
	if (work_class == MEMSETS)
		begin_share(&device->all[COMPUTATION], work, 0, at_ns);
	active_time_begin(&device->busy, at_ns);
	if (work_class != COPIES)
		active_time_begin(&device->kernels, at_ns);
	device->operations++;
	device->sum_ns += work->duration_ns;
}

static void overlap_end_work(void *context, const struct sweep_mark *mark, uint64_t at_ns)
{
	struct overlap *overlap = context;
	struct overlap_device *device = &overlap->devices[mark->device];
	const enum work_class work_class = (enum work_class)(mark->first % WORK_CLASS_COUNT);
	const uint32_t size = mark->first / WORK_CLASS_COUNT;
	const uint64_t hiding_so_far_ns = hiding_ns(device, work_class, at_ns);

	if (size)
		end_share(&device->sizes[size - 1].share, hiding_so_far_ns, at_ns);
	end_share(&device->all[work_class], hiding_so_far_ns, at_ns);
	end_share(&device->owners[work_class][mark->second], hiding_so_far_ns, at_ns);
	if (work_class == MEMSETS)
		end_share(&device->all[COMPUTATION], 0, at_ns);
	active_time_end(&device->busy, at_ns);
	if (work_class != COPIES)
		active_time_end(&device->kernels, at_ns);
}

static void set_rate(struct computed_row *computed, const char *key, uint64_t bytes, uint64_t ns)
{
	if (bytes && ns)
		computed_row_set_unsigned(
			computed, key, clamp_to_u64((double)bytes * 1e9 / (double)ns));
}

static struct computed_row *share_row(struct process *process, uint32_t node, const char *kind,
	const struct overlap_share *share, const struct overlap_device *device,
	enum work_class work_class)
{
	struct computed_row *computed = computed_row_new(process, node, kind);

	computed_row_set_unsigned(computed, "device", device->device);
	computed_row_set_unsigned(computed, "calls", share->operations);
	/* Memsets have bytes of their own row, and no kernel has any. */
	if (share->bytes && work_class != COMPUTATION)
		computed_row_set_unsigned(computed, "bytes", share->bytes);
	computed_row_set_unsigned(computed, "gpu_total_ns", share->sum_ns);
	computed_row_set_unsigned(computed, "busy_ns", share->busy.total_ns);
	if (work_class >= COMPUTATION)
		return computed;
	set_rate(computed, "message_bytes_per_s", share->bytes, share->sized_ns);
	set_rate(computed, "bus_bytes_per_s", share->bus_bytes, share->bus_ns);
	computed_row_set_unsigned(computed, "hidden_ns", share->hidden_ns);
	computed_row_set_unsigned(computed, "exposed_ns", share->busy.total_ns - share->hidden_ns);
	computed_row_set_share(computed, "hidden_share", share->hidden_ns, share->busy.total_ns);
	return computed;
}

static void set_traffic(struct computed_row *computed, enum work_class work_class)
{
	if (work_class < COMPUTATION)
		computed_row_set_string(computed, "traffic", work_classes[work_class].kind);
}

static void add_size_row(struct process *process, struct rows *rows,
	const struct overlap_device *device, struct sized_collectives *one, bool ascii,
	uint32_t parent)
{
	struct computed_row *computed = share_row(
		process, 0, "size", &one->share, device, COMMUNICATION);
	char size[FORMAT_NUMBER_BYTES];

	format_with_unit(size, UNIT_BYTES, clamp_to_i64(one->message_bytes), false, ascii);
	if (one->message_bytes)
		computed_row_format_name(
			computed, one->share.operations > 1 ? "%s each" : "%s", size);
	else
		computed_row_format_name(computed, "size not recorded");
	computed_row_set_unsigned(computed, "min_ns", one->min_ns);
	computed_row_set_unsigned(computed, "p50_ns", percentiles_get(&one->durations, 500));
	computed_row_set_unsigned(computed, "max_ns", one->max_ns);
	computed_row_add(rows, computed, parent);
}

/* Adds the collectives of a node by the size of their messages, if it has several. */
static void add_sizes(const struct options *options, struct process *process, struct rows *rows,
	const struct overlap_device *device, uint32_t node, uint32_t parent)
{
	if (device->owners[COMMUNICATION][node].operations < 2)
		return;
	for (size_t i = 0; i < device->size_count; i++)
		if (device->sizes[i].owner == node)
			add_size_row(process, rows, device, &device->sizes[i], options->style.ascii,
				parent);
	rows_finish_level(options, process, rows, parent + 1, 3, view_top(options));
}

/* Adds the sizes below each row from `first` on. These are the rows of nodes, below one parent. */
static void add_sizes_below(const struct options *options, struct process *process,
	struct rows *rows, const struct overlap_device *device, size_t first)
{
	const size_t count = rows->count - first;
	struct row *places = xcalloc((count + 1) * sizeof *places);

	memcpy(places, rows->rows + first, count * sizeof *places);
	rows->count = first;
	for (size_t i = 0; i < count; i++) {
		rows_add(rows, &places[i]);
		add_sizes(
			options, process, rows, device, places[i].node, (uint32_t)rows->count - 1);
	}
	free(places);
}

static void add_share_nodes(const struct options *options, struct process *process,
	struct rows *rows, const struct overlap_device *device, enum work_class work_class)
{
	const uint32_t parent = (uint32_t)rows->count - 1;

	for (uint32_t node = 0; node < device->room[work_class] && work_class < COMPUTATION;
		node++) {
		const struct overlap_share *share = &device->owners[work_class][node];
		struct computed_row *computed;

		if (!share->operations)
			continue;
		computed = share_row(process, node, "place", share, device, work_class);
		set_traffic(computed, work_class);
		computed_row_add(rows, computed, parent);
	}
	rows_finish_level(options, process, rows, parent + 1, 2, view_top(options));
	if (work_class == COMMUNICATION)
		add_sizes_below(options, process, rows, device, parent + 1);
}

static struct computed_row *overlap_device_row(
	struct process *process, const struct overlap_device *device)
{
	struct computed_row *computed = computed_row_new(process, 0, "device");

	computed_row_format_name(computed, "device %u", device->device);
	computed_row_set_unsigned(computed, "device", device->device);
	computed_row_set_unsigned(computed, "calls", device->operations);
	computed_row_set_unsigned(computed, "gpu_total_ns", device->sum_ns);
	computed_row_set_unsigned(computed, "busy_ns", device->busy.total_ns);
	return computed;
}

/* Adds the row of memsets below that of computation, which is the last one. */
static void add_memsets(const struct options *options, struct process *process, struct rows *rows,
	const struct overlap_device *device)
{
	const uint32_t parent = (uint32_t)rows->count - 1;
	struct computed_row *computed;

	if (!device->all[MEMSETS].operations || options->depth <= 1)
		return;
	computed = share_row(
		process, 0, work_classes[MEMSETS].kind, &device->all[MEMSETS], device, MEMSETS);
	computed_row_format_name(computed, "%s", work_classes[MEMSETS].name);
	computed_row_add(rows, computed, parent);
	rows_finish_level(options, process, rows, parent + 1, 2, UINT32_MAX);
}

static void add_overlap_device(const struct options *options, struct process *process,
	struct rows *rows, const struct overlap_device *device)
{
	struct computed_row *computed = overlap_device_row(process, device);
	const uint32_t parent = (uint32_t)rows->count;

	rows_add(rows, &computed->row);
	for (enum work_class work_class = 0; work_class < MEMSETS && options->depth > 1;
		work_class++) {
		if (!device->all[work_class].operations)
			continue;
		computed = share_row(process, 0, work_classes[work_class].kind,
			&device->all[work_class], device, work_class);
		set_traffic(computed, work_class);
		computed_row_format_name(computed, "%s", work_classes[work_class].name);
		computed_row_add(rows, computed, parent);
		add_share_nodes(options, process, rows, device, work_class);
	}
	add_memsets(options, process, rows, device);
}

static void overlap_device_free(struct overlap_device *device)
{
	for (int work_class = 0; work_class < WORK_CLASS_COUNT; work_class++)
		free(device->owners[work_class]);
	for (size_t i = 0; i < device->size_count; i++)
		percentiles_free(&device->sizes[i].durations);
	free(device->sizes);
}

struct overlap *overlap_begin(void)
{
	return xcalloc(sizeof(struct overlap));
}

struct activity_visitor overlap_visitor(struct overlap *overlap)
{
	return event_sweep_begin(&(struct event_sweep_visitor){ .context = overlap,
					 .begins = overlap_begin_work,
					 .ends = overlap_end_work },
		false);
}

void overlap_add_rows(const struct options *options, struct process *process,
	struct overlap *overlap, struct rows *rows)
{
	qsort(overlap->devices, overlap->count, sizeof *overlap->devices, compare_u32);
	for (size_t i = 0; i < overlap->count; i++)
		add_overlap_device(options, process, rows, &overlap->devices[i]);
}

void overlap_free(struct overlap *overlap)
{
	if (!overlap)
		return;
	for (size_t i = 0; i < overlap->count; i++)
		overlap_device_free(&overlap->devices[i]);
	free(overlap);
}

void arrange_overlap(const struct options *options, struct process *process, struct rows *rows)
{
	struct overlap *overlap = overlap_begin();
	const struct activity_visitor visitor = overlap_visitor(overlap);
	struct activities *activities = activities_read(process);

	activities_visit(activities, &visitor, 1);
	overlap_add_rows(options, process, overlap, rows);
	activities_free(activities);
	overlap_free(overlap);
}
