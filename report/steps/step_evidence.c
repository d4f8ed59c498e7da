/* SPDX-License-Identifier: MIT */
#include "report/steps/step_evidence.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/error.h"
#include "report/gpu/device_timeline.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define THREADS_MAX 65535u /* further threads are ignored */

#define EVIDENCE_BITS 15u

/* Bits of a node's meaning, above the enum evidence_kind in the low 4 bits (EVIDENCE_BITS). */
enum node_flag {
	NODE_FLAG_IN_MODULE = 16,
	NODE_FLAG_IN_BACKWARD = 32,
	NODE_FLAG_PER_EVENT = 64 /* each of its ranges has its own text */
};

struct evidence_range {
	uint64_t begin_ns;
	uint32_t trace_node;
	uint32_t item; /* index in evidence_list.items; EVIDENCE_NO_INDEX: none */
};

struct search_thread {
	struct evidence_range *open; /* outermost first */
	size_t room;
	uint32_t open_count;
	uint32_t thread;   /* index in evidence_list.threads, + 1; 0: no evidence yet */
	uint32_t launches; /* calls that launch, copy or set, so far */
	bool is_leaf;      /* the innermost open range has had no range in it yet */
};

struct evidence_search {
	struct trace_reader *reader;
	struct evidence_list *evidence;
	const char *marker;
	uint8_t *node_meaning; /* by node: enum evidence_kind and node flags */
	struct search_thread **threads;
	size_t thread_count, thread_room;
	uint8_t *captures; /* by name of a function: enum capture_answer */
	/* items_before: number of items at the last captured call */
	size_t name_room, items_before;
};

enum capture_answer { CAPTURE_NOT_ASKED, CAPTURE_NO, CAPTURE_YES };

static bool text_starts_with(struct trace_text text, const char *word)
{
	const size_t length = strlen(word);

	return text.length >= length && memcmp(text.bytes, word, length) == 0;
}

/* Returns true if all characters are digits or separators that are common around numbers in
 * labels. */
static bool is_number_text(const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!memchr("0123456789 #:=/-_.,()[]", bytes[i], 23))
			return false;
	return true;
}

bool step_is_marker(struct trace_text text, const char *marker)
{
	const size_t length = strlen(marker);

	return text_starts_with(text, marker) &&
	       is_number_text(text.bytes + length, text.length - length);
}

/* Returns the word that the name of a range begins with if the rest is a number. A name without a
 * number may be a step too, but not an epoch. */
static enum step_word step_word_of(struct trace_text text)
{
	static const char *const words[STEP_WORD_COUNT] = {
#define X(name, text) [STEP_WORD_##name] = text,
		STEP_WORDS(X)
#undef X
	};

	for (int word = STEP_WORD_NONE + 1; word < STEP_WORD_COUNT; word++) {
		const size_t length = strlen(words[word]);

		if (text.length >= length && strncasecmp(text.bytes, words[word], length) == 0 &&
			is_number_text(text.bytes + length, text.length - length))
			return word == STEP_WORD_EPOCH && text.length == length
				       ? STEP_WORD_NONE
				       : (enum step_word)word;
	}
	return STEP_WORD_NONE;
}

/* Returns the first number in a name, or EVIDENCE_NO_NUMBER. */
static uint32_t number_in(struct trace_text text)
{
	uint64_t number = 0;
	size_t at = 0;

	while (at < text.length && (text.bytes[at] < '0' || text.bytes[at] > '9'))
		at++;
	if (at == text.length)
		return EVIDENCE_NO_NUMBER;
	for (; at < text.length && text.bytes[at] >= '0' && text.bytes[at] <= '9'; at++) {
		number = number * 10 + (uint64_t)(text.bytes[at] - '0');
		if (number >= EVIDENCE_NO_NUMBER)
			return EVIDENCE_NO_NUMBER;
	}
	return (uint32_t)number;
}

static enum evidence_kind evidence_by_name(const struct evidence_search *search,
	const struct trace_node_info *trace_node, struct trace_text text)
{
	if (search->marker && step_is_marker(text, search->marker))
		return EVIDENCE_NAMED;
	if (text_starts_with(text, "ProfilerStep#"))
		return EVIDENCE_PROFILER;
	if (text_starts_with(text, "enumerate(DataLoader)#"))
		return EVIDENCE_DATA;
	if (text_starts_with(text, "Optimizer.zero_grad#"))
		return EVIDENCE_ZERO_GRAD;
	if (text_starts_with(text, "Optimizer.step#"))
		return EVIDENCE_OPTIMIZER;
	if (text_starts_with(text, "autograd::engine::evaluate_function: "))
		return EVIDENCE_BACKWARD;
	if (trace_node->kind == TRACE_NODE_STEP ||
		(trace_node->kind == TRACE_NODE_RANGE && step_word_of(text)))
		return EVIDENCE_RANGE;
	return EVIDENCE_NONE;
}

/* Returns the meaning of a node, given by its kind and name. A module inside a module, or a
 * backward function inside another, is no evidence. */
static uint8_t meaning_of(const struct evidence_search *search, uint32_t id)
{
	const struct trace_node_info *trace_node = reader_node(search->reader, id);
	const uint8_t inherited = search->node_meaning[trace_node->parent] &
				  (NODE_FLAG_IN_MODULE | NODE_FLAG_IN_BACKWARD);
	const enum evidence_kind kind = evidence_by_name(
		search, trace_node, reader_name(search->reader, trace_node->name));

	if (!trace_node->name)
		return inherited | NODE_FLAG_PER_EVENT;
	if (kind == EVIDENCE_BACKWARD ||
		(trace_node->kind == TRACE_NODE_BACKWARD && kind == EVIDENCE_NONE))
		return (inherited ? EVIDENCE_NONE : EVIDENCE_BACKWARD) | inherited |
		       NODE_FLAG_IN_BACKWARD;
	if (trace_node->kind == TRACE_NODE_MODULE && kind == EVIDENCE_NONE)
		return (inherited ? EVIDENCE_NONE : EVIDENCE_FORWARD) | inherited |
		       NODE_FLAG_IN_MODULE;
	return (uint8_t)kind | inherited;
}

/* Fills node_meaning and has_torch. Returns true if there can be evidence: a marker is given, a
 * node is marked or named like a step, or the trace has ranges of PyTorch. */
static bool may_have_steps(struct evidence_search *search)
{
	const uint32_t node_count = reader_node_count(search->reader);
	bool has[EVIDENCE_KINDS] = { false };

	search->node_meaning = xcalloc(node_count);
	for (uint32_t id = 1; id < node_count; id++) {
		const uint16_t kind = reader_node(search->reader, id)->kind;

		search->node_meaning[id] = meaning_of(search, id);
		has[search->node_meaning[id] & EVIDENCE_BITS] = true;
		search->evidence->has_torch |= kind == TRACE_NODE_MODULE || kind == TRACE_NODE_OP ||
					       kind == TRACE_NODE_BACKWARD ||
					       kind == TRACE_NODE_OPTIMIZER;
	}
	search->evidence->has_torch |= has[EVIDENCE_OPTIMIZER] || has[EVIDENCE_DATA] ||
				       has[EVIDENCE_PROFILER] || has[EVIDENCE_BACKWARD];
	return search->evidence->has_torch || has[EVIDENCE_NAMED] || has[EVIDENCE_RANGE] ||
	       search->marker;
}

static struct search_thread *search_thread_of(
	struct evidence_search *search, struct trace_stream *stream)
{
	struct search_thread *thread_state = stream->user;

	if (thread_state)
		return thread_state;
	thread_state = stream->user = xcalloc_cache_aligned(sizeof *thread_state);
	array_grow_zeroed(&search->threads, &search->thread_room, search->thread_count + 1,
		sizeof(struct search_thread *));
	search->threads[search->thread_count++] = thread_state;
	return thread_state;
}

static uint16_t evidence_thread_of(struct evidence_search *search,
	struct search_thread *thread_state, const struct trace_stream *stream)
{
	struct evidence_list *evidence = search->evidence;

	if (!thread_state->thread) {
		ARRAY_GROW(evidence->threads, evidence->thread_room, evidence->thread_count + 1);
		evidence->threads[evidence->thread_count] = (struct evidence_thread){
			.stream = stream->stream, .tid = reader_watched_tid(stream)
		};
		thread_state->thread = (uint32_t)++evidence->thread_count;
	}
	return (uint16_t)(thread_state->thread - 1);
}

/* Adds an item of `kind` for the open range at `depth`, and items EVIDENCE_AROUND for the ranges
 * around it that have none. */
static void add_evidence(struct evidence_search *search, struct search_thread *thread_state,
	const struct trace_stream *stream, uint32_t depth, enum evidence_kind kind)
{
	struct evidence_list *evidence = search->evidence;
	uint32_t from = depth, around;

	while (from > 0 && thread_state->open[from - 1].item == EVIDENCE_NO_INDEX)
		from--;
	around = from > 0 ? thread_state->open[from - 1].item : EVIDENCE_NO_INDEX;
	for (; from <= depth; from++) {
		ARRAY_GROW(evidence->items, evidence->room, evidence->count + 1);
		evidence->items[evidence->count] = (struct evidence_item){
			.begin_ns = thread_state->open[from].begin_ns,
			.end_ns = thread_state->open[from].begin_ns,
			.trace_node = thread_state->open[from].trace_node,
			.around = around,
			.thread = evidence_thread_of(search, thread_state, stream),
			.depth = (uint16_t)(from < UINT16_MAX ? from : UINT16_MAX),
			.kind = (uint8_t)(from == depth ? kind : EVIDENCE_AROUND),
			.is_open = true
		};
		around = thread_state->open[from].item = (uint32_t)evidence->count++;
	}
}

/* Consecutive backward ranges are one item, on any thread. */
static bool extends_last(const struct evidence_list *evidence, enum evidence_kind kind)
{
	return kind == EVIDENCE_BACKWARD && evidence->count &&
	       evidence->items[evidence->count - 1].kind == EVIDENCE_BACKWARD;
}

static enum evidence_kind kind_of_event(
	struct evidence_search *search, const struct trace_event *event)
{
	const uint8_t node_meaning = search->node_meaning[event->node];

	if (__builtin_expect(!(node_meaning & NODE_FLAG_PER_EVENT), 1))
		return (enum evidence_kind)(node_meaning & EVIDENCE_BITS);
	return evidence_by_name(search, reader_node(search->reader, event->node),
		reader_event_text(search->reader, event));
}

/* Fills what is known of a range named like a step when it begins. */
static void note_named_range(struct evidence_search *search, const struct trace_event *event,
	const struct search_thread *thread_state, struct evidence_item *item)
{
	const struct trace_node_info *trace_node = reader_node(search->reader, event->node);
	const struct trace_text text = trace_node->name
					       ? reader_name(search->reader, trace_node->name)
					       : reader_event_text(search->reader, event);

	item->word = (uint8_t)step_word_of(text);
	item->is_marked = trace_node->kind == TRACE_NODE_STEP;
	item->number = number_in(text);
	item->launches_begin = item->launches_end = search->evidence->launches;
	item->own_launches = thread_state->launches;
}

static void begin_range(struct evidence_search *search, const struct trace_event *event)
{
	struct search_thread *thread_state = search_thread_of(search, event->stream);
	const enum evidence_kind kind = kind_of_event(search, event);
	struct evidence_list *evidence = search->evidence;

	if (event->depth >= thread_state->room)
		ARRAY_GROW(thread_state->open, thread_state->room, (size_t)event->depth + 1);
	thread_state->open_count = event->depth + 1;
	thread_state->is_leaf = true;
	thread_state->open[event->depth] = (struct evidence_range){
		.begin_ns = event->begin_ns, .trace_node = event->node, .item = EVIDENCE_NO_INDEX
	};
	if (kind == EVIDENCE_NONE ||
		(!thread_state->thread && evidence->thread_count >= THREADS_MAX))
		return;
	if (extends_last(evidence, kind))
		thread_state->open[event->depth].item = (uint32_t)evidence->count - 1;
	else
		add_evidence(search, thread_state, event->stream, event->depth, kind);
	if (kind == EVIDENCE_BACKWARD)
		evidence->items[evidence->count - 1].number++;
	if (kind == EVIDENCE_NAMED || kind == EVIDENCE_PROFILER)
		evidence->items[evidence->count - 1].number = number_in(
			reader_event_text(search->reader, event));
	if (kind == EVIDENCE_RANGE)
		note_named_range(search, event, thread_state,
			&evidence->items[thread_state->open[event->depth].item]);
}

static void end_evidence(struct evidence_list *evidence, const struct evidence_range *range,
	uint32_t own_launches, uint64_t end_ns, bool is_open)
{
	struct evidence_item *item = &evidence->items[range->item];
	struct evidence_thread *thread = &evidence->threads[item->thread];

	if (item->end_ns < end_ns)
		item->end_ns = end_ns;
	item->is_open = is_open;
	item->launches_end = evidence->launches;
	item->own_launches = own_launches - item->own_launches;
	thread->count[item->kind]++;
	thread->ns[item->kind] += end_ns - range->begin_ns;
	thread->last_ns = end_ns;
}

/* Returns true for ranges that may be steps. */
static bool may_be_step(enum evidence_kind kind)
{
	return kind == EVIDENCE_NAMED || kind == EVIDENCE_PROFILER || kind == EVIDENCE_RANGE;
}

/* Returns true if the end of a range shows that the program was at work until then: the range had
 * no other in it, and cannot be a step. If it can be one, stores when the host was at work last. */
static bool ends_activity(struct evidence_search *search, const struct trace_event *event)
{
	struct search_thread *thread_state = search_thread_of(search, event->stream);
	struct evidence_list *evidence = search->evidence;
	const bool is_leaf = thread_state->is_leaf && event->depth + 1 == thread_state->open_count;
	struct evidence_item *item = NULL;

	thread_state->is_leaf = false;
	if (event->depth < thread_state->open_count &&
		thread_state->open[event->depth].item != EVIDENCE_NO_INDEX)
		item = &evidence->items[thread_state->open[event->depth].item];
	if (!item || !may_be_step((enum evidence_kind)item->kind))
		return is_leaf;
	item->activity_ns = evidence->activity_ns;
	return false;
}

/* Notes when the host was at work last. */
static void note_activity(struct evidence_search *search, const struct trace_event *event)
{
	switch (event->kind) {
	case EVENT_POP:
		if (!ends_activity(search, event))
			return;
		break;
	case TRACE_KERNEL:
	case TRACE_GPU_COPY:
	case TRACE_GPU_SET:
	case TRACE_GPU_BATCH:
	case EVENT_UNENDED:
	case EVENT_LEFT_OPEN:
	case EVENT_STREAM_END:
		return;
	}
	if (event->time_ns > search->evidence->activity_ns)
		search->evidence->activity_ns = event->time_ns;
}

/* Ends a range. `is_open`: its end is missing from the trace. */
static void end_range(struct evidence_search *search, const struct trace_event *event,
	uint64_t end_ns, bool is_open)
{
	struct search_thread *thread_state = search_thread_of(search, event->stream);
	const uint32_t depth = event->depth;

	if (depth >= thread_state->open_count)
		return;
	if (thread_state->open[depth].item != EVIDENCE_NO_INDEX)
		end_evidence(search->evidence, &thread_state->open[depth], thread_state->launches,
			end_ns, is_open);
	memmove(&thread_state->open[depth], &thread_state->open[depth + 1],
		(thread_state->open_count - depth - 1) * sizeof *thread_state->open);
	thread_state->open_count--;
}

/* Returns true for functions that begin or end a CUDA graph capture. In traces of other tools,
 * these calls are the only evidence of a capture. */
static bool is_capturing(struct evidence_search *search, uint32_t api)
{
	static const char *const names[] = { "StreamBeginCapture", "StreamEndCapture",
		"GraphInstantiate" };
	struct trace_text name;
	size_t prefix;

	if (api < search->name_room && search->captures[api] != CAPTURE_NOT_ASKED)
		return search->captures[api] == CAPTURE_YES;
	name = reader_name(search->reader, api);
	prefix = text_starts_with(name, "cuda") ? 4 : 2;
	/* An unknown id may be any number, so it must not be used as an index. */
	if (!name.known)
		return false;
	if (api >= search->name_room)
		array_grow_zeroed(&search->captures, &search->name_room, (size_t)api + 1, 1);
	search->captures[api] = CAPTURE_NO;
	for (size_t i = 0; name.length > prefix && i < sizeof names / sizeof *names; i++)
		if (text_starts_with((struct trace_text){ name.bytes + prefix,
					     name.length - (uint32_t)prefix, true },
			    names[i]))
			search->captures[api] = CAPTURE_YES;
	return search->captures[api] == CAPTURE_YES;
}

static void note_call(struct evidence_search *search, const struct trace_event *event)
{
	const struct trace_call *call = event->record;
	struct evidence_list *evidence = search->evidence;

	if (!call ||
		(!(call->head.flags & TRACE_CALL_CAPTURED) && !is_capturing(search, call->api)))
		return;
	if (!evidence->capture_count || search->items_before != evidence->count) {
		ARRAY_GROW(evidence->captures, evidence->capture_room, evidence->capture_count + 1);
		evidence->captures[evidence->capture_count++].begin_ns = event->time_ns;
		search->items_before = evidence->count;
	}
	evidence->captures[evidence->capture_count - 1].end_ns = event->time_ns;
}

static void free_search_thread(struct evidence_search *search, struct trace_stream *stream)
{
	struct search_thread *thread_state = stream->user;

	for (size_t i = 0; thread_state && i < search->thread_count; i++)
		if (search->threads[i] == thread_state)
			search->threads[i] = search->threads[--search->thread_count];
	if (thread_state)
		free(thread_state->open);
	free(thread_state);
	stream->user = NULL;
}

static void search_event(struct evidence_search *search, const struct trace_event *event)
{
	switch (event->kind) {
	case TRACE_PUSH:
	case EVENT_RESUMED:
		begin_range(search, event);
		break;
	case EVENT_POP:
		end_range(search, event, event->time_ns, false);
		break;
	case EVENT_UNENDED:
	case EVENT_LEFT_OPEN:
		end_range(search, event, event->last_ns, true);
		break;
	case TRACE_LAUNCH:
	case TRACE_GRAPH_LAUNCH:
	case TRACE_COPY:
	case TRACE_SET:
		search_thread_of(search, event->stream)->launches++;
		search->evidence->launches++;
		note_call(search, event);
		break;
	case TRACE_SYNC:
		note_call(search, event);
		break;
	case EVENT_STREAM_END:
		free_search_thread(search, event->stream);
		break;
	}
}

static void evidence_search_free(struct evidence_search *search)
{
	while (search->thread_count) {
		struct search_thread *thread_state = search->threads[--search->thread_count];

		free(thread_state->open);
		free(thread_state);
	}
	free(search->threads);
	free(search->captures);
}

/* Handles the begin or end of a range that is no evidence, which most are. Returns false, with
 * nothing done, for all other events. Does what note_activity and search_event do. */
static inline bool is_plain_range(struct evidence_search *search, const struct trace_event *event)
{
	struct search_thread *thread_state = event->stream->user;
	const uint32_t depth = event->depth;

	if (!thread_state)
		return false;
	if (event->kind == TRACE_PUSH) {
		if (search->node_meaning[event->node] & (EVIDENCE_BITS | NODE_FLAG_PER_EVENT) ||
			depth >= thread_state->room)
			return false;
		thread_state->open[depth] = (struct evidence_range){ .begin_ns = event->begin_ns,
			.trace_node = event->node,
			.item = EVIDENCE_NO_INDEX };
		thread_state->open_count = depth + 1;
		thread_state->is_leaf = true;
		search->evidence->activity_ns = event->time_ns;
		return true;
	}
	if (event->kind != EVENT_POP || depth + 1 != thread_state->open_count ||
		thread_state->open[depth].item != EVIDENCE_NO_INDEX)
		return false;
	if (thread_state->is_leaf)
		search->evidence->activity_ns = event->time_ns;
	thread_state->is_leaf = false;
	thread_state->open_count = depth;
	return true;
}

static void see_events(void *context, const struct trace_event *events, size_t count)
{
	struct evidence_search *search = context;

	for (size_t i = 0; i < count; i++) {
		if (__builtin_expect(is_plain_range(search, &events[i]), 1))
			continue;
		note_activity(search, &events[i]);
		search_event(search, &events[i]);
	}
	search->evidence->last_ns = events[count - 1].time_ns;
}

/* When the first GPU operation begins and the last one ends. last_ns 0: there is none. */
struct gpu_span {
	uint64_t first_ns, last_ns;
};

static void extend_gpu_span(
	struct gpu_span *span, struct trace_reader *reader, const struct trace_gpu *gpu)
{
	uint64_t begin_ns, end_ns;

	if (!reader_gpu_times(reader, gpu->start_ns, gpu->end_ns, &begin_ns, &end_ns))
		return;
	if (!span->last_ns || begin_ns < span->first_ns)
		span->first_ns = begin_ns;
	span->last_ns = max_u64(span->last_ns, end_ns);
}

/* The host's events are searched in the thread that decodes them. GPU work is added to the timeline
 * here. */
static void search_trace(struct evidence_search *search, struct timeline *timeline)
{
	struct event_watch watch = { .context = search, .see = see_events };
	struct trace_reader *reader = search->reader;
	struct gpu_span span = { .last_ns = 0 };
	const struct trace_event *event;
	struct trace_event room;
	int status;

	for (uint32_t kind = 0; kind < EVENT_KINDS; kind++)
		watch.returns[kind] = timeline_needs(kind);
	reader_rewind(reader);
	reader_watch(reader, &watch);
	while ((status = reader_next_in_place(reader, &room, &event)) > 0) {
		if (event->kind != TRACE_GRAPH_LAUNCH)
			extend_gpu_span(&span, reader, event->record);
		if (timeline)
			timeline_add(timeline, event);
	}
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(reader));
	if (timeline)
		timeline_end(timeline);
	search->evidence->first_gpu_ns = span.first_ns;
	search->evidence->last_gpu_ns = span.last_ns;
	for (size_t i = 0; i < search->evidence->count; i++)
		search->evidence->count_of[search->evidence->items[i].kind]++;
	evidence_search_free(search);
}

struct evidence_list *step_evidence_read(
	struct trace_reader *reader, const char *marker, struct timeline *timeline)
{
	struct evidence_search search = { .reader = reader,
		.evidence = xcalloc_cache_aligned(sizeof *search.evidence),
		.marker = marker && *marker ? marker : NULL };

	if (may_have_steps(&search)) {
		search_trace(&search, timeline);
	} else {
		step_evidence_free(search.evidence);
		search.evidence = NULL;
	}
	free(search.node_meaning);
	return search.evidence;
}

void step_evidence_free(struct evidence_list *evidence)
{
	if (!evidence)
		return;
	free(evidence->items);
	free(evidence->captures);
	free(evidence->threads);
	free(evidence);
}
