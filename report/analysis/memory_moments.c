/* SPDX-License-Identifier: MIT */
#include "report/analysis/memory_moments.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/error.h"
#include "report/text/suggest.h"
#include <stdlib.h>
#include <string.h>

/* Less free memory than a segment of small tensors has, or than 1 / FRAGMENTED_PARTS of what is
 * reserved, is no fragmentation, however it is divided. */
#define FRAGMENTED_BYTES (UINT64_C(2) << 20)
#define FRAGMENTED_PARTS 100u
#define HISTORY_WORK UINT64_C(2000000000) /* segments that a history visits: some seconds */
#define SPARSE_PARTS 4u /* a segment is sparse if blocks occupy less than 1 / SPARSE_PARTS of it */

double figures_fragmentation(const struct memory_figures *figures)
{
	if (figures->free_inside < FRAGMENTED_BYTES ||
		figures->free_inside < figures->reserved / FRAGMENTED_PARTS)
		return 0;
	return 1 - (double)figures->largest_gap / (double)figures->free_inside;
}

double figures_free_share(const struct memory_figures *figures)
{
	const uint64_t known = figures->reserved - figures->unknown;

	return known ? (double)figures->free_inside / (double)known : 0;
}

uint64_t memory_end_ns(const struct process *process)
{
	const uint64_t end_ns = process->profile->memory->end_ns;

	return end_ns ? end_ns : UINT64_MAX;
}

/* ---- which moments ---- */

static const struct memory_level *device_level(
	const struct memory_owners *memory, uint32_t kind, uint32_t device)
{
	for (uint32_t i = 0; i < memory->level_count; i++)
		if (memory->levels[i].kind == kind && memory->levels[i].device == device)
			return &memory->levels[i];
	return NULL;
}

static void add_moment(struct memory_moments *moments, const struct process *process,
	const struct memory_moment *moment)
{
	struct memory_moment *added = ARRAY_ADD(moments->moments, moments->room, moments->count);

	*added = *moment;
	added->has_tensors = memory_owners_tensors(process->profile->memory, added->device);
}

/* Adds the last time that memory ran out on a device: of PyTorch's allocator, else of CUDA. */
static void add_oom(struct memory_moments *moments, const struct process *process, uint32_t device)
{
	const struct memory_owners *memory = process->profile->memory;

	for (uint32_t i = memory->oom_count; i-- > 0;)
		if (memory->ooms[i].device == device) {
			add_moment(moments, process,
				&(struct memory_moment){ .kind = MOMENT_OOM,
					.at_ns = memory->ooms[i].time_ns,
					.device = device,
					.requested = memory->ooms[i].requested_bytes });
			return;
		}
	for (uint32_t i = memory->failed_count; i-- > 0;)
		if (memory->failed[i].device == device &&
			memory_is_device(memory->failed[i].kind)) {
			add_moment(moments, process,
				&(struct memory_moment){ .kind = MOMENT_OOM,
					.at_ns = memory->failed[i].time_ns,
					.device = device,
					.requested = memory->failed[i].requested_bytes });
			return;
		}
}

static void add_peak(struct memory_moments *moments, const struct process *process, uint32_t device)
{
	const struct memory_owners *memory = process->profile->memory;
	const struct memory_level *level = memory_owners_tensors(memory, device);

	if (!level)
		level = device_level(memory, TRACE_MEMORY_DEVICE, device);
	if (!level)
		level = device_level(memory, TRACE_MEMORY_DEVICE_STATIC, device);
	if (level)
		add_moment(moments, process,
			&(struct memory_moment){
				.kind = MOMENT_PEAK, .at_ns = level->peak_ns, .device = device });
}

/* Adds the end of the step with this number. */
static void add_step(struct memory_moments *moments, const struct process *process, uint32_t device,
	uint64_t number)
{
	const struct steps *steps = process->steps;

	for (size_t i = 0; steps && !steps_overlap(steps) && i < steps->count; i++)
		if (steps->steps[i].number == number) {
			add_moment(moments, process,
				&(struct memory_moment){ .kind = MOMENT_STEP,
					.at_ns = steps->steps[i].end_ns,
					.step = number,
					.device = device });
			return;
		}
}

/* What a word of --at means. */
struct moment_word {
	enum moment_kind kind;
	uint64_t number; /* MOMENT_STEP: of the step; MOMENT_TIME: ns */
};

static bool parse_moment_time(const char *word, struct moment_word *parsed)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	char *end;
	const double value = strtod(word, &end);

	if (end == word || word[strspn(word, "0123456789.")] != *end || !(value >= 0))
		return false;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (!strcmp(end, units[i].unit)) {
			parsed->kind = MOMENT_TIME;
			parsed->number = clamp_to_u64((long double)value * units[i].ns + 0.5L);
			return true;
		}
	return false;
}

static _Noreturn void refuse_moment(const char *bytes, size_t length)
{
	struct suggestion near = suggest_for(bytes, length);

	suggest_offer(&near, "peak");
	suggest_offer(&near, "oom");
	suggest_offer(&near, "end");
	fatal(STATUS_USAGE,
		"--at needs peak, oom, end, the number of a step, or a time such as 12.5ms, not "
		"`%.*s`%s",
		(int)(length < 100 ? length : 100), bytes, suggest_text(&near, NULL));
}

static struct moment_word parse_moment(const char *bytes, size_t length)
{
	struct moment_word parsed = { .kind = MOMENT_STEP };
	char word[40] = "", *end;

	if (length < sizeof word)
		memcpy(word, bytes, length);
	if (!strcmp(word, "peak"))
		parsed.kind = MOMENT_PEAK;
	else if (!strcmp(word, "oom"))
		parsed.kind = MOMENT_OOM;
	else if (!strcmp(word, "end"))
		parsed.kind = MOMENT_END;
	else if (*word && word[strspn(word, "0123456789")] == '\0' && strlen(word) < 20)
		parsed.number = strtoull(word, &end, 10);
	else if (!parse_moment_time(word, &parsed))
		refuse_moment(bytes, length);
	return parsed;
}

static void add_moment_of_device(struct memory_moments *moments, const struct process *process,
	uint32_t device, const struct moment_word *word)
{
	if (word->kind == MOMENT_PEAK)
		add_peak(moments, process, device);
	else if (word->kind == MOMENT_OOM)
		add_oom(moments, process, device);
	else if (word->kind == MOMENT_STEP)
		add_step(moments, process, device, word->number);
	else
		add_moment(moments, process,
			&(struct memory_moment){ .kind = word->kind,
				.at_ns = word->kind == MOMENT_END ? memory_end_ns(process)
								  : word->number,
				.device = device });
}

/* Whether this level is the first one of a device's own memory or of its tensors. */
static bool is_first_of_device(const struct memory_owners *memory, uint32_t index)
{
	const struct memory_level *level = &memory->levels[index];

	if (level->device == UINT32_MAX ||
		(level->kind != MEMORY_TENSOR && !memory_is_device(level->kind)))
		return false;
	for (uint32_t i = 0; i < index; i++)
		if (memory->levels[i].device == level->device &&
			(memory->levels[i].kind == MEMORY_TENSOR ||
				memory_is_device(memory->levels[i].kind)))
			return false;
	return true;
}

/* A loop over the levels `index` that are the first one of a device that is to be shown. */
#define FOR_EACH_DEVICE(options, memory, index)                          \
	for (uint32_t index = 0; index < (memory)->level_count; index++) \
		if (is_first_of_device(memory, index) &&                 \
			((options)->device < 0 ||                        \
				(memory)->levels[index].device == (uint32_t)(options)->device))

COMPARE_BY_THREE(by_time_and_device, struct memory_moment, at_ns, device, kind)

static void sort_moments(struct memory_moments *moments)
{
	if (moments->count)
		qsort(moments->moments, moments->count, sizeof *moments->moments,
			by_time_and_device);
}

void memory_moments_add(struct memory_moments *moments, const struct options *options,
	const struct process *process, const char *word, size_t length)
{
	const struct moment_word parsed = parse_moment(word, length);
	const struct memory_owners *memory = process->profile->memory;

	FOR_EACH_DEVICE(options, memory, i)
	add_moment_of_device(moments, process, memory->levels[i].device, &parsed);
}

void memory_moments_add_list(struct memory_moments *moments, const struct options *options,
	const struct process *process, const char *list)
{
	const struct memory_owners *memory = process->profile->memory;

	if (!list)
		list = memory->counts.ooms || memory_owners_last_failed(memory) ? "oom" : "peak";
	for (size_t length; *list; list += length + (list[length] == ',')) {
		length = strcspn(list, ",");
		memory_moments_add(moments, options, process, list, length);
	}
}

/* Returns the number of changes of the segments of the device that had most. */
static uint64_t most_changes(const struct options *options, const struct memory_owners *memory)
{
	uint64_t most = 0;

	FOR_EACH_DEVICE(options, memory, i)
	{
		uint64_t changes = 0;

		for (uint32_t j = 0; j < memory->level_count; j++)
			if (memory->levels[j].device == memory->levels[i].device &&
				memory_is_device(memory->levels[j].kind))
				changes += memory->levels[j].flow.allocs +
					   memory->levels[j].flow.frees +
					   memory->levels[j].flow.failed;
		most = max_u64(most, changes + memory->counts.ooms);
	}
	return most;
}

/* Returns how many moments may be taken after changes if each of `all` changes is requested. Taking
 * one is a walk over all segments, of which there may be as many as changes. */
static uint64_t changes_at_most(uint64_t all)
{
	return max_u64(1000, all ? HISTORY_WORK / all : 0);
}

void memory_moments_add_history(struct memory_moments *moments, const struct options *options,
	const struct process *process, uint32_t most)
{
	const struct memory_owners *memory = process->profile->memory;
	const uint64_t all = most_changes(options, memory);
	/* Three moments are those with a name. */
	const uint64_t changes = most == UINT32_MAX ? changes_at_most(all)
				 : most > 5         ? max_u64((most - 3) / 2, 1)
						    : 1,
		       times = most == UINT32_MAX ? 0 : changes;

	memory_moments_add(moments, options, process, "peak", 4);
	memory_moments_add(moments, options, process, "oom", 3);
	memory_moments_add(moments, options, process, "end", 3);
	FOR_EACH_DEVICE(options, memory, i)
	for (uint64_t time = 1; time <= times; time++)
		add_moment(moments, process,
			&(struct memory_moment){ .kind = MOMENT_TIME,
				.at_ns = (uint64_t)((double)process->profile->totals.wall_ns *
						    (double)time / (double)(times + 1)),
				.device = memory->levels[i].device });
	moments->change_stride = (all + changes - 1) / changes;
	moments->changes_left_out = all - all / max_u64(moments->change_stride, 1);
}

/* ---- the pass ---- */

struct moments_pass {
	struct memory_moments *moments;
	struct process *process;
	int64_t device; /* of --device; -1: all */
	struct memory_segments *map;
	struct memory_moment *changes; /* taken after changes; NULL: none */
	size_t change_count, change_room;
	size_t next; /* of moments->moments; all before it are taken */
	size_t map_bytes;
	/* A moment of the history is due on this device. A new segment gets its first tensor with
	 * the next event, so the moment waits for that. UINT32_MAX: none is due. */
	uint32_t due_device;
	bool with_parts;
};

/* Copies what is visited to a moment. */
struct moment_copy {
	struct memory_moment *moment;
	size_t first_block, first_gap;
	bool with_parts;
};

static void copy_block(void *context, const struct memory_block *block, uint64_t bytes)
{
	struct memory_moment *moment = ((struct moment_copy *)context)->moment;

	(void)bytes;
	*ARRAY_ADD(moment->blocks, moment->block_room, moment->block_count) = *block;
}

static void copy_stray(void *context, const struct memory_block *block)
{
	copy_block(context, block, 0);
}

static void copy_gap(void *context, uint64_t address, uint64_t bytes)
{
	struct memory_moment *moment = ((struct moment_copy *)context)->moment;

	*ARRAY_ADD(moment->gaps, moment->gap_room,
		moment->gap_count) = (struct moment_gap){ .address = address, .bytes = bytes };
}

static void sum_segment(struct memory_figures *figures, const struct segment_parts *parts)
{
	figures->segments++;
	if (!parts->has_blocks_known) {
		figures->unknown_segments++;
		figures->unknown += parts->segment->bytes;
		figures->pool_segments += parts->segment->is_pool;
		return;
	}
	figures->free_inside += parts->in_gaps;
	figures->gaps += parts->gaps;
	figures->largest_gap = max_u64(figures->largest_gap, parts->largest_gap);
	figures->overlapped += parts->overlapped;
	figures->outside -= parts->in_blocks;
	if (!parts->blocks) {
		figures->empty_segments++;
		figures->empty += parts->in_gaps;
	} else if (parts->in_blocks < parts->segment->bytes / SPARSE_PARTS) {
		figures->sparse_segments++;
		figures->sparse += parts->segment->bytes;
		figures->sparse_blocks += parts->blocks;
		figures->sparse_occupied += parts->in_blocks;
	}
}

/* Returns the integral of the occupied bytes up to now. */
static uint64_t occupied_byte_ns(const struct memory_segment *segment, uint64_t now_ns)
{
	const uint64_t passed = now_ns > segment->changed_ns ? now_ns - segment->changed_ns : 0;

	return clamp_to_u64((long double)segment->byte_ns +
			    (long double)segment->occupied * (long double)passed);
}

static void copy_segment(void *context, const struct segment_parts *parts)
{
	struct moment_copy *copy = context;
	struct memory_moment *moment = copy->moment;

	sum_segment(&moment->figures, parts);
	if (!copy->with_parts)
		return;
	*ARRAY_ADD(moment->segments, moment->segment_room,
		moment->segment_count) = (struct moment_segment){ .segment = *parts->segment,
		.in_blocks = parts->in_blocks,
		.in_gaps = parts->in_gaps,
		.largest_gap = parts->largest_gap,
		.overlapped = parts->overlapped,
		.byte_ns = occupied_byte_ns(parts->segment, moment->at_ns),
		.first_block = copy->first_block,
		.block_count = moment->block_count - copy->first_block,
		.first_gap = copy->first_gap,
		.gap_count = moment->gap_count - copy->first_gap,
		.has_blocks_known = parts->has_blocks_known };
	copy->first_block = moment->block_count;
	copy->first_gap = moment->gap_count;
}

void memory_moment_take(
	struct memory_moment *moment, const struct memory_segments *map, bool with_parts)
{
	struct moment_copy copy = { .moment = moment, .with_parts = with_parts };
	const struct segment_visitor visitor = { .context = &copy,
		.block = with_parts ? copy_block : NULL,
		.gap = with_parts ? copy_gap : NULL,
		.segment = copy_segment,
		.stray = with_parts ? copy_stray : NULL };
	const struct memory_device *device = memory_segments_device(map, moment->device);

	moment->taken = true;
	if (device)
		moment->figures = (struct memory_figures){ .reserved = device->held,
			.tensors = device->tensors,
			.blocks = device->blocks,
			.outside = device->tensors,
			.changes = device->changes,
			.reported_allocated = device->reported_allocated,
			.reported_reserved = device->reported_reserved };
	memory_segments_visit(map, moment->device, &visitor);
}

static void take_moment(const struct moments_pass *pass, struct memory_moment *moment)
{
	memory_moment_take(moment, pass->map, pass->with_parts);
}

/* Takes the moments before `at_ns`. */
static void take_moments_before(struct moments_pass *pass, uint64_t at_ns)
{
	struct memory_moments *moments = pass->moments;

	for (; pass->next < moments->count && moments->moments[pass->next].at_ns < at_ns;
		pass->next++)
		if (!moments->moments[pass->next].taken)
			take_moment(pass, &moments->moments[pass->next]);
}

/* Takes the moments of this kind, device and time, after the event that makes them. */
static void take_moments_at(
	struct moments_pass *pass, enum moment_kind kind, uint32_t device, uint64_t at_ns)
{
	struct memory_moments *moments = pass->moments;

	for (size_t i = pass->next; i < moments->count && moments->moments[i].at_ns == at_ns; i++)
		if (moments->moments[i].kind == kind && moments->moments[i].device == device &&
			!moments->moments[i].taken)
			take_moment(pass, &moments->moments[i]);
}

/* Requests a moment of the history after every change_stride changes of the segments of `device`.
 */
static void note_change(struct moments_pass *pass, uint32_t device)
{
	const struct memory_device *totals = memory_segments_device(pass->map, device);

	if (pass->moments->change_stride && totals &&
		totals->changes % pass->moments->change_stride == 0 &&
		(pass->device < 0 || device == (uint32_t)pass->device))
		pass->due_device = device;
}

static void take_due_moment(struct moments_pass *pass, uint64_t at_ns)
{
	struct memory_moment *moment;

	if (pass->due_device == UINT32_MAX)
		return;
	moment = ARRAY_ADD(pass->changes, pass->change_room, pass->change_count);
	*moment = (struct memory_moment){
		.kind = MOMENT_CHANGE, .at_ns = at_ns, .device = pass->due_device
	};
	moment->has_tensors = memory_owners_tensors(
		pass->process->profile->memory, pass->due_device);
	take_moment(pass, moment);
	pass->due_device = UINT32_MAX;
}

static void restart_moments(void *context)
{
	struct moments_pass *pass = context;

	memory_segments_restart(pass->map);
	pass->due_device = UINT32_MAX;
	pass->next = pass->change_count = 0;
	for (size_t i = 0; i < pass->moments->count; i++) {
		struct memory_moment *moment = &pass->moments->moments[i];

		moment->segment_count = moment->block_count = moment->gap_count = 0;
		moment->figures = (struct memory_figures){ .reserved = 0 };
		moment->taken = false;
	}
}

static void note_map_bytes(struct moments_pass *pass)
{
	const size_t bytes = memory_segments_bytes(pass->map);

	if (bytes > pass->map_bytes)
		pass->map_bytes = bytes;
}

static void observe_moments(void *context, const struct observed_memory *seen)
{
	struct moments_pass *pass = context;
	const struct memory_change *change = seen->change;
	const uint64_t at_ns = seen->event->time_ns;
	const struct memory_level *level;

	take_moments_before(pass, at_ns);
	if (seen->event->kind != TRACE_TENSOR)
		take_due_moment(pass, at_ns);
	memory_segments_change(pass->map, seen);
	note_map_bytes(pass);
	if (seen->event->kind != TRACE_TENSOR) {
		note_change(pass, change->allocated_bytes ? change->device : change->freed_device);
		return;
	}
	take_due_moment(pass, at_ns);
	if (pass->next == pass->moments->count || pass->moments->moments[pass->next].at_ns != at_ns)
		return;
	level = memory_owners_tensors(pass->process->profile->memory, change->device);
	if (level &&
		level->pool.peak == ((const struct trace_tensor *)seen->event->record)->allocated)
		take_moments_at(pass, MOMENT_PEAK, change->device, at_ns);
}

static void observe_moment_mappings(void *context, const struct observed_mapping *seen)
{
	struct moments_pass *pass = context;

	take_moments_before(pass, seen->event->time_ns);
	take_due_moment(pass, seen->event->time_ns);
	memory_segments_map(pass->map, seen);
	note_map_bytes(pass);
}

static void observe_moment_marks(void *context, const struct trace_event *event)
{
	struct moments_pass *pass = context;
	const uint32_t device = event->kind == TRACE_TENSOR_OOM
					? ((const struct trace_tensor *)event->record)->device
				: event->kind == TRACE_ALLOC
					? ((const struct trace_memory *)event->record)->call.device
					: UINT32_MAX;

	take_moments_before(pass, event->time_ns);
	take_due_moment(pass, event->time_ns);
	memory_segments_mark(pass->map, event);
	if (event->kind == TRACE_WINDOW)
		return;
	take_moments_at(pass, MOMENT_OOM, device, event->time_ns);
	note_change(pass, device);
}

/* Adds the moments of the history to the requested ones. */
static void join_moments(struct moments_pass *pass)
{
	for (size_t i = 0; i < pass->change_count; i++)
		*ARRAY_ADD(pass->moments->moments, pass->moments->room,
			pass->moments->count) = pass->changes[i];
	free(pass->changes);
	sort_moments(pass->moments);
	pass->moments->map_bytes = pass->map_bytes;
}

/* After the last event. */
static void take_last_moments(struct moments_pass *pass)
{
	struct memory_moments *moments = pass->moments;

	take_due_moment(pass, pass->process->wall_ns);
	take_moments_before(pass, UINT64_MAX);
	for (; pass->next < moments->count; pass->next++) {
		struct memory_moment *moment = &moments->moments[pass->next];

		moment->at_ns = pass->process->wall_ns; /* the end of the trace */
		if (!moment->taken)
			take_moment(pass, moment);
	}
	join_moments(pass);
}

void memory_moments_take(struct memory_moments *moments, struct process *process,
	const struct options *options, bool with_parts)
{
	struct moments_pass pass = { .moments = moments,
		.process = process,
		.device = options->device,
		.map = memory_segments_new(),
		.due_device = UINT32_MAX,
		.with_parts = with_parts };
	const struct profile_observer observer = { .context = &pass,
		.restart = restart_moments,
		.memory = observe_moments,
		.mapping = observe_moment_mappings,
		.memory_mark = observe_moment_marks };
	const struct profile_options wanted = profile_options_for_observer(
		process->profile, &observer);

	sort_moments(moments);
	profile_free(profile_build(process->reader, process->texts, &wanted));
	take_last_moments(&pass);
	memory_segments_free(pass.map);
}

void memory_moment_free(struct memory_moment *moment)
{
	free(moment->segments);
	free(moment->blocks);
	free(moment->gaps);
}

void memory_moments_free(struct memory_moments *moments)
{
	for (size_t i = 0; i < moments->count; i++)
		memory_moment_free(&moments->moments[i]);
	free(moments->moments);
	*moments = (struct memory_moments){ .count = 0 };
}
