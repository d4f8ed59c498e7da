/* SPDX-License-Identifier: MIT */
#include "report/steps/step_evidence.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/gpu/device_timeline.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define THREADS_MOST 65535u /* more are not looked at */

/* What a place means. */
enum place_flag {
	PLACE_IN_MODULE = 16,
	PLACE_IN_BACKWARD = 32,
	PLACE_ASK = 64 /* each of its ranges has its own text */
};

/* A range that is open. */
struct opened {
	uint64_t begin_ns;
	uint32_t place, sign; /* SIGN_ALONE: it is none */
};

struct looker {
	struct opened *open;
	size_t room;
	uint32_t depth, thread; /* thread: index + 1; 0: it has no signs so far */
};

struct search {
	struct trace_reader *reader;
	struct signs *signs;
	const char *marker;
	uint8_t *meaning; /* by place: enum sign_kind and flags */
	struct looker **lookers;
	size_t looker_count, looker_room;
	uint8_t *captures; /* by name of a function: enum capture_answer */
	size_t name_room, signs_before; /* as many signs as there were at the last captured call */
};

enum capture_answer { CAPTURE_NOT_ASKED, CAPTURE_NO, CAPTURE_YES };

static bool begins_with(struct trace_text text, const char *word)
{
	const size_t length = strlen(word);

	return text.length >= length && memcmp(text.bytes, word, length) == 0;
}

/* Only digits and what stands around numbers in labels. */
static bool is_number(const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!memchr("0123456789 #:=/-_.,()[]", bytes[i], 23))
			return false;
	return true;
}

bool signs_is_marker(struct trace_text text, const char *marker)
{
	const size_t length = strlen(marker);

	return begins_with(text, marker) && is_number(text.bytes + length, text.length - length);
}

/* Programs name their steps like this; `epoch` would hold many of them. */
static bool is_named_like_a_step(struct trace_text text)
{
	static const char *const words[] = { "step", "iter", "iteration", "train_step", "training_step", "batch" };
	const size_t digits = text.length;
	size_t length;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		length = strlen(words[i]);
		if (digits >= length && strncasecmp(text.bytes, words[i], length) == 0 &&
			is_number(text.bytes + length, text.length - length))
			return true;
	}
	return false;
}

static enum sign_kind kind_by_name(const struct search *search, const struct trace_place *place, struct trace_text text)
{
	if (search->marker && signs_is_marker(text, search->marker))
		return SIGN_NAMED;
	if (begins_with(text, "ProfilerStep#"))
		return SIGN_PROFILER;
	if (begins_with(text, "enumerate(DataLoader)#"))
		return SIGN_DATA;
	if (begins_with(text, "Optimizer.zero_grad#"))
		return SIGN_ZERO;
	if (begins_with(text, "Optimizer.step#"))
		return SIGN_OPTIMIZER;
	if (begins_with(text, "autograd::engine::evaluate_function: "))
		return SIGN_BACKWARD;
	if (place->kind == TRACE_NODE_STEP || (place->kind == TRACE_NODE_RANGE && is_named_like_a_step(text)))
		return SIGN_RANGE;
	return SIGN_NONE;
}

/* A place is what its kind and name say, unless it lies in one of the same sort. */
static uint8_t meaning_of(const struct search *search, uint32_t id)
{
	const struct trace_place *place = reader_place(search->reader, id);
	const uint8_t inherited = search->meaning[place->parent] & (PLACE_IN_MODULE | PLACE_IN_BACKWARD);
	const enum sign_kind kind = kind_by_name(search, place, reader_name(search->reader, place->name));

	if (!place->name)
		return inherited | PLACE_ASK;
	if (kind == SIGN_BACKWARD || (place->kind == TRACE_NODE_BACKWARD && kind == SIGN_NONE))
		return (inherited ? SIGN_NONE : SIGN_BACKWARD) | inherited | PLACE_IN_BACKWARD;
	if (place->kind == TRACE_NODE_MODULE && kind == SIGN_NONE)
		return (inherited ? SIGN_NONE : SIGN_FORWARD) | inherited | PLACE_IN_MODULE;
	return (uint8_t)kind | inherited;
}

/* Whether it is worth a pass: a program that is not PyTorch's has steps only where it is told which. */
static bool may_have_steps(struct search *search)
{
	const uint32_t places = reader_nodes(search->reader);
	bool has[SIGN_KINDS] = { false };

	search->meaning = need(places);
	for (uint32_t id = 1; id < places; id++) {
		const uint16_t kind = reader_place(search->reader, id)->kind;

		search->meaning[id] = meaning_of(search, id);
		has[search->meaning[id] & 15] = true;
		search->signs->has_torch |= kind == TRACE_NODE_MODULE || kind == TRACE_NODE_OP ||
					    kind == TRACE_NODE_BACKWARD || kind == TRACE_NODE_OPTIMIZER;
	}
	search->signs->has_torch |= has[SIGN_OPTIMIZER] || has[SIGN_DATA] || has[SIGN_PROFILER] || has[SIGN_BACKWARD];
	return search->signs->has_torch || has[SIGN_NAMED] || search->marker;
}

static struct looker *looker_of(struct search *search, struct trace_stream *stream)
{
	struct looker *looker = stream->user;

	if (looker)
		return looker;
	looker = stream->user = need(sizeof *looker);
	grow(&search->lookers, &search->looker_room, search->looker_count + 1, sizeof(struct looker *));
	search->lookers[search->looker_count++] = looker;
	return looker;
}

static uint16_t thread_of(struct search *search, struct looker *looker, uint32_t stream)
{
	struct signs *signs = search->signs;

	if (!looker->thread) {
		grow(&signs->threads, &signs->thread_room, signs->thread_count + 1, sizeof *signs->threads);
		signs->threads[signs->thread_count] = (struct sign_thread){ .stream = stream };
		looker->thread = (uint32_t)++signs->thread_count;
	}
	return (uint16_t)(looker->thread - 1);
}

/* The sign of an open range, made if it has none yet, with those of all around it. */
static uint32_t sign_at(
	struct search *search, struct looker *looker, uint32_t stream, uint32_t depth, enum sign_kind kind)
{
	struct signs *signs = search->signs;
	struct opened *opened = &looker->open[depth];
	uint32_t from = depth, around;

	if (kind == SIGN_AROUND && opened->sign != SIGN_ALONE)
		return opened->sign;
	while (from > 0 && looker->open[from - 1].sign == SIGN_ALONE)
		from--;
	around = from > 0 ? looker->open[from - 1].sign : SIGN_ALONE;
	for (; from <= depth; from++) {
		grow(&signs->signs, &signs->room, signs->count + 1, sizeof *signs->signs);
		signs->signs[signs->count] = (struct sign){ .begin_ns = looker->open[from].begin_ns,
			.end_ns = looker->open[from].begin_ns,
			.place = looker->open[from].place,
			.around = around,
			.thread = thread_of(search, looker, stream),
			.depth = (uint16_t)(from < UINT16_MAX ? from : UINT16_MAX),
			.kind = (uint8_t)(from == depth ? kind : SIGN_AROUND),
			.is_open = true };
		around = looker->open[from].sign = (uint32_t)signs->count++;
	}
	return around;
}

/* Gradients that are computed in a row are one sign, whatever thread they are computed on. */
static bool joins_last(const struct signs *signs, enum sign_kind kind)
{
	return kind == SIGN_BACKWARD && signs->count && signs->signs[signs->count - 1].kind == SIGN_BACKWARD;
}

static enum sign_kind kind_of_event(struct search *search, const struct trace_event *event)
{
	const uint8_t meaning = search->meaning[event->node];

	if (__builtin_expect(!(meaning & PLACE_ASK), 1))
		return (enum sign_kind)(meaning & 15);
	return kind_by_name(
		search, reader_place(search->reader, event->node), reader_event_text(search->reader, event));
}

static void opens(struct search *search, const struct trace_event *event)
{
	struct looker *looker = looker_of(search, event->stream);
	const enum sign_kind kind = kind_of_event(search, event);
	struct signs *signs = search->signs;

	if (event->depth >= looker->room)
		grow(&looker->open, &looker->room, (size_t)event->depth + 1, sizeof *looker->open);
	looker->depth = event->depth + 1;
	looker->open[event->depth] = (struct opened){
		.begin_ns = event->begin_ns, .place = event->node, .sign = SIGN_ALONE
	};
	if (kind == SIGN_NONE || (!looker->thread && signs->thread_count >= THREADS_MOST))
		return;
	if (joins_last(signs, kind))
		looker->open[event->depth].sign = (uint32_t)signs->count - 1;
	else
		sign_at(search, looker, event->stream->stream, event->depth, kind);
}

/* is_open: it did not close by itself. */
static void closes(struct search *search, const struct trace_event *event, uint64_t end_ns, bool is_open)
{
	struct looker *looker = looker_of(search, event->stream);
	const uint32_t depth = event->depth;
	struct sign_thread *thread;
	struct sign *sign;

	if (depth >= looker->depth)
		return;
	if (looker->open[depth].sign != SIGN_ALONE) {
		sign = &search->signs->signs[looker->open[depth].sign];
		thread = &search->signs->threads[sign->thread];
		if (sign->end_ns < end_ns)
			sign->end_ns = end_ns;
		sign->is_open = is_open;
		thread->count[sign->kind]++;
		thread->ns[sign->kind] += end_ns - looker->open[depth].begin_ns;
		thread->last_ns = end_ns;
	}
	memmove(&looker->open[depth], &looker->open[depth + 1], (looker->depth - depth - 1) * sizeof *looker->open);
	looker->depth--;
}

/* Functions that begin or end the making of a CUDA graph. Traces of other tools have only these. */
static bool is_capturing(struct search *search, uint32_t api)
{
	static const char *const names[] = { "StreamBeginCapture", "StreamEndCapture", "GraphInstantiate" };
	const struct trace_text name = reader_name(search->reader, api);
	const size_t prefix = begins_with(name, "cuda") ? 4 : 2;

	if (!name.known) /* any number, which is none of an array's */
		return false;
	if (api >= search->name_room)
		grow(&search->captures, &search->name_room, (size_t)api + 1, 1);
	if (search->captures[api] == CAPTURE_NOT_ASKED) {
		search->captures[api] = CAPTURE_NO;
		for (size_t i = 0; name.length > prefix && i < sizeof names / sizeof *names; i++)
			if (begins_with((struct trace_text){ name.bytes + prefix, name.length - (uint32_t)prefix, true }, names[i]))
				search->captures[api] = CAPTURE_YES;
	}
	return search->captures[api] == CAPTURE_YES;
}

static void calls(struct search *search, const struct trace_event *event)
{
	const struct trace_call *call = event->record;
	struct signs *signs = search->signs;

	if (!call || (!(call->head.flags & TRACE_CALL_CAPTURED) && !is_capturing(search, call->api)))
		return;
	if (!signs->capture_count || search->signs_before != signs->count) {
		grow(&signs->captures, &signs->capture_room, signs->capture_count + 1, sizeof *signs->captures);
		signs->captures[signs->capture_count++].begin_ns = event->time_ns;
		search->signs_before = signs->count;
	}
	signs->captures[signs->capture_count - 1].end_ns = event->time_ns;
}

static void end_looker(struct search *search, struct trace_stream *stream)
{
	struct looker *looker = stream->user;

	for (size_t i = 0; looker && i < search->looker_count; i++)
		if (search->lookers[i] == looker)
			search->lookers[i] = search->lookers[--search->looker_count];
	if (looker)
		free(looker->open);
	free(looker);
	stream->user = NULL;
}

static void look_at(struct search *search, const struct trace_event *event)
{
	switch (event->kind) {
	case TRACE_PUSH:
	case EVENT_RESUMED:
		opens(search, event);
		break;
	case EVENT_POP:
		closes(search, event, event->time_ns, false);
		break;
	case EVENT_UNENDED:
	case EVENT_LEFT_OPEN:
		closes(search, event, event->last_ns, true);
		break;
	case TRACE_LAUNCH:
	case TRACE_COPY:
	case TRACE_SET:
	case TRACE_SYNC:
		calls(search, event);
		break;
	case EVENT_STREAM_END:
		end_looker(search, event->stream);
		break;
	default:
		break;
	}
}

static void read_all(struct search *search, struct timeline *timeline)
{
	struct trace_event event;
	int status;

	reader_rewind(search->reader);
	while ((status = reader_next(search->reader, &event)) > 0) {
		look_at(search, &event);
		if (timeline)
			timeline_show(timeline, &event);
		search->signs->last_ns = event.time_ns;
	}
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(search->reader));
	if (timeline)
		timeline_end(timeline);
	for (size_t i = 0; i < search->signs->count; i++)
		search->signs->count_of[search->signs->signs[i].kind]++;
	while (search->looker_count) {
		struct looker *looker = search->lookers[--search->looker_count];

		free(looker->open);
		free(looker);
	}
	free(search->lookers);
	free(search->captures);
}

struct signs *signs_read(struct trace_reader *reader, const char *marker, struct timeline *timeline)
{
	struct search search = { .reader = reader, .marker = marker && *marker ? marker : NULL };

	search.signs = need(sizeof *search.signs);
	if (may_have_steps(&search)) {
		read_all(&search, timeline);
	} else {
		signs_free(search.signs);
		search.signs = NULL;
	}
	free(search.meaning);
	return search.signs;
}

void signs_free(struct signs *signs)
{
	if (!signs)
		return;
	free(signs->signs);
	free(signs->captures);
	free(signs->threads);
	free(signs);
}
