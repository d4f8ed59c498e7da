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
#include <string.h>

/* Communication and copies can be hidden; computation hides them. */
enum traffic { COMMUNICATION, COPIES, COMPUTATION, TRAFFIC_COUNT };

static const struct {
	const char *name, *kind;
} traffics[TRAFFIC_COUNT] = { { "communication", "communication" }, { "copies", "copies" },
	{ "computation", "computation" } };

struct overlap_share {
	struct active_time busy;
	/* hidden_ns: hidden so far. covered_at_begin_ns: busy time of what hides it, when it last
	 * became active. */
	uint64_t hidden_ns, covered_at_begin_ns;
	uint64_t works, bytes, sum_ns;
};

struct overlap_device {
	uint32_t device;
	struct active_time busy, kernels; /* kernels: computation or communication */
	struct overlap_share all[TRAFFIC_COUNT], *owners[TRAFFIC_COUNT];
	size_t room[TRAFFIC_COUNT];
	uint64_t works, sum_ns;
};

struct overlap {
	struct overlap_device devices[TIMELINE_DEVICES];
	size_t count;
};

static enum traffic traffic_of(const struct activity *work)
{
	return work->kind == ACTIVITY_COPY ? COPIES
	       : work->communicates        ? COMMUNICATION
					   : COMPUTATION;
}

static struct overlap_device *overlap_device_of(struct overlap *overlap, uint32_t device)
{
	return device_slot(overlap->devices, &overlap->count, sizeof *overlap->devices, device);
}

/* Returns the busy time of what hides `traffic`. Computation hides communication, either of them
 * hides copies, and nothing hides computation. */
static uint64_t hiding_ns(const struct overlap_device *device, enum traffic traffic, uint64_t at_ns)
{
	return traffic == COMMUNICATION ? active_time_total(&device->all[COMPUTATION].busy, at_ns)
	       : traffic == COPIES      ? active_time_total(&device->kernels, at_ns)
					: 0;
}

static void begin_share(struct overlap_share *share, const struct activity *work,
	uint64_t covered_ns, uint64_t at_ns)
{
	if (!share->busy.active)
		share->covered_at_begin_ns = covered_ns;
	active_time_begin(&share->busy, at_ns);
	share->works++;
	share->bytes += work->bytes;
	share->sum_ns += work->duration_ns;
}

static void end_share(struct overlap_share *share, uint64_t covered_ns, uint64_t at_ns)
{
	if (active_time_end(&share->busy, at_ns))
		share->hidden_ns += covered_ns - share->covered_at_begin_ns;
}

static void overlap_begin_work(
	void *context, const struct activity *work, uint64_t at_ns, struct sweep_mark *mark)
{
	struct overlap *overlap = context;
	struct overlap_device *device = overlap_device_of(overlap, work->device);
	const enum traffic traffic = traffic_of(work);
	const uint64_t covered_ns = hiding_ns(device, traffic, at_ns);

	*mark = (struct sweep_mark){ (uint32_t)(device - overlap->devices), (uint32_t)traffic,
		work->owner };
	array_grow_zeroed(&device->owners[traffic], &device->room[traffic], (size_t)work->owner + 1,
		sizeof *device->owners[traffic]);
	begin_share(&device->all[traffic], work, covered_ns, at_ns);
	begin_share(&device->owners[traffic][work->owner], work, covered_ns, at_ns);
	active_time_begin(&device->busy, at_ns);
	if (traffic != COPIES)
		active_time_begin(&device->kernels, at_ns);
	device->works++;
	device->sum_ns += work->duration_ns;
}

static void overlap_end_work(void *context, const struct sweep_mark *mark, uint64_t at_ns)
{
	struct overlap *overlap = context;
	struct overlap_device *device = &overlap->devices[mark->device];
	const enum traffic traffic = (enum traffic)mark->first;
	const uint64_t covered_ns = hiding_ns(device, traffic, at_ns);

	end_share(&device->all[traffic], covered_ns, at_ns);
	end_share(&device->owners[traffic][mark->second], covered_ns, at_ns);
	active_time_end(&device->busy, at_ns);
	if (traffic != COPIES)
		active_time_end(&device->kernels, at_ns);
}

static struct computed_row *share_row(struct process *process, uint32_t node,
	const struct overlap_share *share, const struct overlap_device *device,
	enum traffic traffic)
{
	struct computed_row *computed = computed_row_new(process, node);

	computed_row_set_unsigned(computed, "device", device->device);
	computed_row_set_unsigned(computed, "calls", share->works);
	computed_row_set_unsigned(computed, "bytes", share->bytes);
	computed_row_set_unsigned(computed, "gpu_total_ns", share->sum_ns);
	computed_row_set_unsigned(computed, "busy_ns", share->busy.total_ns);
	if (traffic == COMPUTATION)
		return computed;
	computed_row_set_string(computed, "traffic", traffics[traffic].kind);
	computed_row_set_unsigned(computed, "hidden_ns", share->hidden_ns);
	computed_row_set_unsigned(computed, "exposed_ns", share->busy.total_ns - share->hidden_ns);
	computed_row_set_share(computed, "hidden_share", share->hidden_ns, share->busy.total_ns);
	return computed;
}

static void add_share_nodes(const struct options *options, struct process *process,
	struct rows *rows, const struct overlap_device *device, enum traffic traffic)
{
	const uint32_t parent = (uint32_t)rows->count - 1;

	for (uint32_t node = 0; node < device->room[traffic] && traffic != COMPUTATION; node++) {
		const struct overlap_share *share = &device->owners[traffic][node];
		struct computed_row *computed;

		if (!share->works)
			continue;
		computed = share_row(process, node, share, device, traffic);
		computed_row_set_string(computed, "kind", "place");
		computed_row_add(rows, computed, parent);
	}
	rows_finish_level(options, process, rows, parent + 1, 2, view_top(options));
}

static struct computed_row *overlap_device_row(
	struct process *process, const struct overlap_device *device)
{
	struct computed_row *computed = computed_row_new(process, 0);

	computed_row_format_name(computed, "device %u", device->device);
	computed_row_set_string(computed, "kind", "device");
	computed_row_set_unsigned(computed, "device", device->device);
	computed_row_set_unsigned(computed, "calls", device->works);
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
	for (enum traffic traffic = 0; traffic < TRAFFIC_COUNT && options->depth > 1; traffic++) {
		if (!device->all[traffic].works)
			continue;
		computed = share_row(process, 0, &device->all[traffic], device, traffic);
		computed_row_format_name(computed, "%s", traffics[traffic].name);
		computed_row_set_string(computed, "kind", traffics[traffic].kind);
		computed_row_add(rows, computed, parent);
		add_share_nodes(options, process, rows, device, traffic);
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
		for (int traffic = 0; traffic < TRAFFIC_COUNT; traffic++)
			free(overlap->devices[i].owners[traffic]);
	}
	activities_free(activities);
	free(overlap);
}
