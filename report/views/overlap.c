/* SPDX-License-Identifier: MIT
 *
 * Computes how much of a GPU's copies and communication was hidden behind computation: by device,
 * and by the node that launched them.
 */
#include "report/views/views.h"
#include "report/base/compare.h"
#include "report/analysis/event_sweep.h"
#include "report/base/alloc.h"
#include "report/table/computed_row.h"
#include <stdlib.h>

/* Communication and copies can be hidden; computation hides them. */
enum work_class { COMMUNICATION, COPIES, COMPUTATION, WORK_CLASS_COUNT };

static const struct {
	const char *name, *kind;
} work_classes[WORK_CLASS_COUNT] = { { "communication", "communication" }, { "copies", "copies" },
	{ "computation", "computation" } };

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

struct overlap_device {
	uint32_t device;
	struct active_time busy, kernels; /* kernels: computation or communication */
	struct overlap_share all[WORK_CLASS_COUNT], *owners[WORK_CLASS_COUNT];
	size_t room[WORK_CLASS_COUNT];
	uint64_t operations, sum_ns;
};

struct overlap {
	struct overlap_device devices[TIMELINE_DEVICES];
	size_t count;
};

static enum work_class work_class_of(const struct activity *work)
{
	return work->kind == ACTIVITY_COPY ? COPIES
	       : work->communicates        ? COMMUNICATION
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

static void overlap_begin_work(
	void *context, const struct activity *work, uint64_t at_ns, struct sweep_mark *mark)
{
	struct overlap *overlap = context;
	struct overlap_device *device = device_slot(
		overlap->devices, &overlap->count, sizeof *overlap->devices, work->device);
	const enum work_class work_class = work_class_of(work);
	const uint64_t hiding_so_far_ns = hiding_ns(device, work_class, at_ns);

	*mark = (struct sweep_mark){ (uint32_t)(device - overlap->devices), (uint32_t)work_class,
		work->owner };
	ARRAY_GROW(device->owners[work_class], device->room[work_class], (size_t)work->owner + 1);
	begin_share(&device->all[work_class], work, hiding_so_far_ns, at_ns);
	begin_share(&device->owners[work_class][work->owner], work, hiding_so_far_ns, at_ns);
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
	const enum work_class work_class = (enum work_class)mark->first;
	const uint64_t hiding_so_far_ns = hiding_ns(device, work_class, at_ns);

	end_share(&device->all[work_class], hiding_so_far_ns, at_ns);
	end_share(&device->owners[work_class][mark->second], hiding_so_far_ns, at_ns);
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
	if (work_class == COPIES || share->bytes) /* the size of a collective may be unknown */
		computed_row_set_unsigned(computed, "bytes", share->bytes);
	computed_row_set_unsigned(computed, "gpu_total_ns", share->sum_ns);
	computed_row_set_unsigned(computed, "busy_ns", share->busy.total_ns);
	if (work_class == COMPUTATION)
		return computed;
	set_rate(computed, "message_bytes_per_s", share->bytes, share->sized_ns);
	set_rate(computed, "bus_bytes_per_s", share->bus_bytes, share->bus_ns);
	computed_row_set_string(computed, "traffic", work_classes[work_class].kind);
	computed_row_set_unsigned(computed, "hidden_ns", share->hidden_ns);
	computed_row_set_unsigned(computed, "exposed_ns", share->busy.total_ns - share->hidden_ns);
	computed_row_set_share(computed, "hidden_share", share->hidden_ns, share->busy.total_ns);
	return computed;
}

static void add_share_nodes(const struct options *options, struct process *process,
	struct rows *rows, const struct overlap_device *device, enum work_class work_class)
{
	const uint32_t parent = (uint32_t)rows->count - 1;

	for (uint32_t node = 0; node < device->room[work_class] && work_class != COMPUTATION;
		node++) {
		const struct overlap_share *share = &device->owners[work_class][node];
		struct computed_row *computed;

		if (!share->operations)
			continue;
		computed = share_row(process, node, "place", share, device, work_class);
		computed_row_add(rows, computed, parent);
	}
	rows_finish_level(options, process, rows, parent + 1, 2, view_top(options));
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

static void add_overlap_device(const struct options *options, struct process *process,
	struct rows *rows, const struct overlap_device *device)
{
	struct computed_row *computed = overlap_device_row(process, device);
	const uint32_t parent = (uint32_t)rows->count;

	rows_add(rows, &computed->row);
	for (enum work_class work_class = 0; work_class < WORK_CLASS_COUNT && options->depth > 1;
		work_class++) {
		if (!device->all[work_class].operations)
			continue;
		computed = share_row(process, 0, work_classes[work_class].kind,
			&device->all[work_class], device, work_class);
		computed_row_format_name(computed, "%s", work_classes[work_class].name);
		computed_row_add(rows, computed, parent);
		add_share_nodes(options, process, rows, device, work_class);
	}
}

void arrange_overlap(const struct options *options, struct process *process, struct rows *rows)
{
	struct overlap *overlap = xcalloc(sizeof *overlap);
	const struct event_sweep_visitor visitor = {
		.context = overlap, .begins = overlap_begin_work, .ends = overlap_end_work
	};
	struct activities *activities = activities_read(process);

	event_sweep_run(activities, &visitor, false);
	qsort(overlap->devices, overlap->count, sizeof *overlap->devices, compare_u32);
	for (size_t i = 0; i < overlap->count; i++) {
		add_overlap_device(options, process, rows, &overlap->devices[i]);
		for (int work_class = 0; work_class < WORK_CLASS_COUNT; work_class++)
			free(overlap->devices[i].owners[work_class]);
	}
	activities_free(activities);
	free(overlap);
}
