/* SPDX-License-Identifier: MIT
 * arrange_overlap.c: how much of what a GPU copied and communicated it did while it computed: by device, and by the
 * places that asked for it.
 */
#include "report/views/views.h"
#include "report/analysis/event_sweep.h"
#include "report/base/alloc.h"
#include "report/table/computed_row.h"
#include <stdlib.h>
#include <string.h>

/* What can hide behind something else, and what it hides behind. */
enum traffic { COMMUNICATION, COPIES, COMPUTATION, TRAFFIC_COUNT };

static const struct {
	const char *name, *kind;
} traffics[TRAFFIC_COUNT] = { { "communication", "communication" }, { "copies", "copies" },
	{ "computation", "computation" } };

struct share_of {
	struct stretch busy;
	uint64_t hidden_ns, since; /* since: what it hides behind had been busy for, when it began */
	uint64_t works, bytes, sum_ns;
};

struct overlap_device {
	struct stretch busy, kernels; /* kernels: computation or communication */
	struct share_of all[TRAFFIC_COUNT], *owners[TRAFFIC_COUNT];
	size_t room[TRAFFIC_COUNT];
	uint64_t works, sum_ns;
	uint32_t device;
};

struct overlap {
	struct overlap_device devices[TIMELINE_DEVICES];
	size_t count;
};

static enum traffic traffic_of(const struct activity *work)
{
	return work->kind == ACTIVITY_COPY ? COPIES : work->communicates ? COMMUNICATION : COMPUTATION;
}

static struct overlap_device *device_of(struct overlap *overlap, uint32_t device)
{
	size_t at = 0;

	while (at < overlap->count && overlap->devices[at].device != device)
		at++;
	if (at == TIMELINE_DEVICES)
		at--;
	else if (at == overlap->count)
		overlap->devices[overlap->count++].device = device;
	return &overlap->devices[at];
}

/* What hides it: communication hides behind computation, copies behind either. Nothing hides computation. */
static uint64_t cover(const struct overlap_device *device, enum traffic traffic, uint64_t at_ns)
{
	return traffic == COMMUNICATION ? stretch_total(&device->all[COMPUTATION].busy, at_ns)
	       : traffic == COPIES      ? stretch_total(&device->kernels, at_ns)
					: 0;
}

static void begin_share(struct share_of *share, const struct activity *work, uint64_t covered_ns, uint64_t at_ns)
{
	if (!share->busy.active)
		share->since = covered_ns;
	stretch_begin(&share->busy, at_ns);
	share->works++;
	share->bytes += work->bytes;
	share->sum_ns += work->duration_ns;
}

static void end_share(struct share_of *share, uint64_t covered_ns, uint64_t at_ns)
{
	if (stretch_end(&share->busy, at_ns))
		share->hidden_ns += covered_ns - share->since;
}

static void begins(void *context, const struct activity *work, uint64_t at_ns, struct edge_mark *mark)
{
	struct overlap *overlap = context;
	struct overlap_device *device = device_of(overlap, work->device);
	const enum traffic traffic = traffic_of(work);
	const uint64_t covered_ns = cover(device, traffic, at_ns);

	*mark = (struct edge_mark){ (uint32_t)(device - overlap->devices), (uint32_t)traffic, work->owner };
	grow(&device->owners[traffic], &device->room[traffic], (size_t)work->owner + 1,
		sizeof *device->owners[traffic]);
	begin_share(&device->all[traffic], work, covered_ns, at_ns);
	begin_share(&device->owners[traffic][work->owner], work, covered_ns, at_ns);
	stretch_begin(&device->busy, at_ns);
	if (traffic != COPIES)
		stretch_begin(&device->kernels, at_ns);
	device->works++;
	device->sum_ns += work->duration_ns;
}

static void ends(void *context, const struct edge_mark *mark, uint64_t at_ns)
{
	struct overlap *overlap = context;
	struct overlap_device *device = &overlap->devices[mark->device];
	const enum traffic traffic = (enum traffic)mark->first;
	const uint64_t covered_ns = cover(device, traffic, at_ns);

	end_share(&device->all[traffic], covered_ns, at_ns);
	end_share(&device->owners[traffic][mark->second], covered_ns, at_ns);
	stretch_end(&device->busy, at_ns);
	if (traffic != COPIES)
		stretch_end(&device->kernels, at_ns);
}

static struct tally *tell(struct process *process, uint32_t node, const struct share_of *share,
	const struct overlap_device *device, enum traffic traffic)
{
	struct tally *tally = tally_new(process, node);

	tally_unsigned(tally, "device", device->device);
	tally_unsigned(tally, "calls", share->works);
	tally_unsigned(tally, "bytes", share->bytes);
	tally_unsigned(tally, "gpu_total_ns", share->sum_ns);
	tally_unsigned(tally, "busy_ns", share->busy.total_ns);
	if (traffic == COMPUTATION)
		return tally;
	tally_words(tally, "traffic", traffics[traffic].kind);
	tally_unsigned(tally, "hidden_ns", share->hidden_ns);
	tally_unsigned(tally, "exposed_ns", share->busy.total_ns - share->hidden_ns);
	tally_share(tally, "hidden_share", share->hidden_ns, share->busy.total_ns);
	return tally;
}

static void add_places(const struct options *options, struct process *process, struct rows *rows,
	const struct overlap_device *device, enum traffic traffic)
{
	const uint32_t parent = (uint32_t)rows->count - 1;

	for (uint32_t node = 0; node < device->room[traffic] && traffic != COMPUTATION; node++) {
		const struct share_of *share = &device->owners[traffic][node];
		struct tally *tally;

		if (!share->works)
			continue;
		tally = tell(process, node, share, device, traffic);
		tally_words(tally, "kind", "place");
		tally_add(rows, tally, parent);
	}
	rows_end(options, process, rows, parent + 1, 2, view_top(options));
}

static void add_device(
	const struct options *options, struct process *process, struct rows *rows, const struct overlap_device *device)
{
	struct tally *tally = tally_new(process, 0);
	const uint32_t parent = (uint32_t)rows->count;

	tally_name_format(tally, "device %u", device->device);
	tally_words(tally, "kind", "device");
	tally_unsigned(tally, "device", device->device);
	tally_unsigned(tally, "calls", device->works);
	tally_unsigned(tally, "gpu_total_ns", device->sum_ns);
	tally_unsigned(tally, "busy_ns", device->busy.total_ns);
	rows_add(rows, &tally->row);
	for (enum traffic traffic = 0; traffic < TRAFFIC_COUNT && options->depth > 1; traffic++) {
		if (!device->all[traffic].works)
			continue;
		tally = tell(process, 0, &device->all[traffic], device, traffic);
		tally_name_format(tally, "%s", traffics[traffic].name);
		tally_words(tally, "kind", traffics[traffic].kind);
		tally_add(rows, tally, parent);
		add_places(options, process, rows, device, traffic);
	}
}

static int by_device(const void *a, const void *b)
{
	const struct overlap_device *left = a, *right = b;

	return (left->device > right->device) - (left->device < right->device);
}

static void arrange(const struct options *options, struct process *process, struct rows *rows)
{
	struct overlap *overlap = need(sizeof *overlap);
	const struct edges_visitor visitor = { .context = overlap, .begins = begins, .ends = ends };
	struct activities *activities = activities_read(process);

	edges_visit(activities, &visitor, false);
	qsort(overlap->devices, overlap->count, sizeof *overlap->devices, by_device);
	for (size_t i = 0; i < overlap->count; i++) {
		add_device(options, process, rows, &overlap->devices[i]);
		for (int traffic = 0; traffic < TRAFFIC_COUNT; traffic++)
			free(overlap->devices[i].owners[traffic]);
	}
	activities_free(activities);
	free(overlap);
}

void arrange_overlap(const struct options *options, struct processes *processes, struct rows *rows)
{
	for (size_t i = 0; i < processes->shown; i++)
		arrange(options, &processes->all[i], rows);
}
