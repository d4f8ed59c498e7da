/* SPDX-License-Identifier: MIT
 * ranges.c: see ranges.h. range_push and range_pop are the hot path of the whole library: one look into the thread's cache, one stamp, one word.
 */
#include "ranges.h"

#include "clock.h"
#include "dictionary.h"
#include "stream_state.h"
#include "trace_file.h"

#include <errno.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* The short forms of trace_format.h. */
#define FORM_PUSH4 1u
#define FORM_POP4 2u
#define FORM_PUSH8 3u

/* Ticks from the last stamp to `now`; a counter that seems to step back stands still. */
static inline uint64_t advance(struct stream *s, uint64_t now)
{
	uint64_t gap = now > s->last ? now - s->last : 0;

	s->last += gap;
	return gap;
}

/* Room for a short form, and the gap that it shall hold, in this order: making room may stamp. After a long gap the clocks are noted
 * first. false: no room, the event is lost. */
static bool prepare_short(struct stream *s, size_t bytes, uint64_t *gap)
{
	bool room = stream_room(s, bytes);

	if (room && clock_now() - s->last >= STREAM_GAP_MOST && clock_now() > s->last) {
		stream_clock(s);
		room = stream_room(s, bytes);
	}
	*gap = advance(s, clock_now());
	if (*gap >= STREAM_GAP_MOST) /* halted for long between two lines: the next CLOCK sets it right */
		*gap = STREAM_GAP_MOST - 1;
	return room;
}

/* ---- which node ---- */

static inline uint64_t address_bits(const char *text)
{
	return (uint64_t)(uintptr_t)text * 0x9E3779B97F4A7C15u;
}

static inline struct cached_child *near_place(struct stream *s, const char *text)
{
	return &s->near[(s->top->node * 2 + (uint32_t)(address_bits(text) >> 63)) % STREAM_NEAR];
}

static inline struct cached_child *far_place(struct stream *s, const char *text)
{
	return &s->far[(uint32_t)(address_bits(text) >> 32) * (s->top->node | 1) >> 18];
}
static_assert(STREAM_FAR == 1 << 14, "far_place takes 14 bits");

static inline uint32_t cached_key(uint32_t parent, uint32_t domain)
{
	return domain << 20 | parent;
}

#if defined(__SSE2__)
static inline bool same_16(const char *a, const char *b)
{
	__m128i x = _mm_loadu_si128((const __m128i *)(const void *)a), y = _mm_loadu_si128((const __m128i *)(const void *)b);

	return _mm_movemask_epi8(_mm_cmpeq_epi8(x, y)) == 0xFFFF;
}

/* strcmp, for a text whose length we know. The last 16 bytes overlap those before; of a `text` that is shorter than ours, and only then, up to 15
 * bytes behind its end are looked at, in the same page. */
__attribute__((no_sanitize("address"))) static inline bool same_text(const char *kept, size_t bytes, const char *text)
{
	size_t last = bytes + 1 - 16;

	if (__builtin_expect(bytes < 15 || ((uintptr_t)text & 4095) + bytes >= 4096, 0))
		return !strcmp(kept, text);
	for (size_t i = 0; i < last; i += 16)
		if (!same_16(kept + i, text + i))
			return false;
	return same_16(kept + last, text + last);
}
#else
static inline bool same_text(const char *kept, size_t bytes, const char *text)
{
	return !strncmp(kept, text, bytes + 1);
}
#endif

/* Only the text itself decides: programs reuse their buffers. */
static inline bool is_child(const struct cached_child *place, uint32_t key, const char *text)
{
	return place->key == key && place->chars && same_text(place->chars, place->bytes, text);
}

static void cache_child(struct stream *s, const char *text, struct cached_child child)
{
	struct cached_child *place = near_place(s, text);

	/* The key without a text: a parent with many children, which all go where there is more room. So it is with the root from the start. */
	if (place->key == child.key) {
		place->chars = NULL;
		place = far_place(s, text);
	}
	*place = child;
}

/* By content: names and nodes are looked up, or made. 0: it gets no id of its own. */
static __attribute__((noinline)) uint32_t find_child(struct stream *s, uint32_t domain, const char *text)
{
	const struct cached_child *far = far_place(s, text);
	bool cached = domain < CACHED_DOMAINS;
	uint32_t key = cached_key(s->top->node, domain), name, node;
	size_t bytes;

	if (cached && is_child(far, key, text))
		return far->node;
	bytes = strlen(text);
	name = name_id(text, bytes);
	node = name ? node_id(s->top->node, name, domain, TRACE_NODE_RANGE) : 0;
	if (cached && node && bytes < CACHED_BYTES)
		cache_child(s, text, (struct cached_child){name_text(name, &bytes), key, bytes & (CACHED_BYTES - 1), node & 0xFFFFF});
	return node;
}

static inline uint32_t child_node(struct stream *s, uint32_t domain, const char *text)
{
	const struct cached_child *near = near_place(s, text);
	uint32_t key = cached_key(s->top->node, domain);

	return __builtin_expect(domain < CACHED_DOMAINS && is_child(near, key, text), 1) ? near->node : find_child(s, domain, text);
}

/* ---- the row of open ranges ---- */

static uint32_t level_in_domain(const struct stream *s, uint32_t domain)
{
	for (const struct frame *frame = s->top; frame > s->frames; frame--)
		if (frame->domain == domain)
			return frame->level + 1;
	return 0;
}

/* The new innermost range. Its level. There is room. */
static inline int open_frame(struct stream *s, uint32_t node, uint32_t domain)
{
	uint32_t level = s->top->domain == domain ? s->top->level + 1 : level_in_domain(s, domain);

	s->top++;
	s->top->begin = s->last;
	s->top->node = node;
	s->top->domain = domain;
	s->top->level = level;
	return (int)level;
}

/* ---- records with attributes or inline text ---- */

static void fill_range(struct trace_range *record, uint32_t domain, uint32_t name, const char *text, size_t inline_bytes,
		       const struct range_attributes *attributes)
{
	record->domain = domain;
	record->name = name;
	if (attributes) {
		record->head.flags = (uint8_t)attributes->flags;
		record->category = attributes->category;
		record->color = attributes->color;
		record->payload_type = attributes->payload_type;
		record->payload = attributes->payload;
	}
	if (!name) {
		record->head.flags |= TRACE_HAS_TEXT;
		record->text_bytes = (uint32_t)inline_bytes;
		memcpy(record + 1, text, inline_bytes);
	}
}

/* A PUSH, START or MARK at the present stamp. `name` 0: the text goes along, cut if it must be. NULL: no room. */
static struct trace_range *put_range(enum trace_kind kind, uint32_t domain, uint32_t name, const char *text,
				     const struct range_attributes *attributes)
{
	size_t bytes = name ? 0 : strlen(text);
	struct trace_range *record;

	if (bytes > TRACE_TEXT_MAX)
		bytes = TRACE_TEXT_MAX;
	record = stream_record(kind, sizeof *record + ((bytes + 7) & ~(size_t)7));
	if (record)
		fill_range(record, domain, name, text, bytes, attributes);
	return record;
}

/* The node of pushes whose texts get no ids: one below each parent, or the parent itself at the very end. */
static uint32_t nameless_child(const struct stream *s, uint32_t domain)
{
	uint32_t node = node_id(s->top->node, 0, domain, TRACE_NODE_RANGE);

	return node ? node : s->top->node;
}

static __attribute__((noinline)) int push_record(struct stream *s, uint32_t node, uint32_t domain, const char *text,
						 const struct range_attributes *attributes)
{
	uint32_t name = node ? name_id(text, strlen(text)) : 0;
	struct trace_range *record;
	int level;

	if (!node)
		node = nameless_child(s, domain);
	record = put_range(TRACE_PUSH, domain, name, text, attributes);
	if (record)
		record->head.node = node;
	level = open_frame(s, node, domain);
	if (record)
		stream_publish(s);
	return level;
}

/* A push that fits no 4-byte form, or needs room first. */
static int push_wide(struct stream *s, uint32_t node, uint32_t domain)
{
	uint64_t gap;
	uint32_t words[2];

	if (prepare_short(s, sizeof words, &gap)) {
		words[0] = node << 2 | FORM_PUSH8;
		words[1] = (uint32_t)gap;
		stream_put_words(s, words, sizeof words);
	}
	return open_frame(s, node, domain);
}

/* Deeper than anything we keep: only counted, so that its pop is known again. */
static int push_beyond(struct stream *s, uint32_t domain)
{
	s->beyond++;
	trace_lose(TRACE_LOST_TOO_DEEP, 1); /* not the stream's loss: its row of open ranges stays right */
	return (int)(level_in_domain(s, domain) + s->beyond - 1);
}

static __attribute__((noinline)) int push_slowly(uint32_t domain, const char *text, const struct range_attributes *attributes)
{
	struct stream *s = stream_begin();
	uint32_t node;
	int level;

	if (!s)
		return RANGE_REFUSED;
	if (!text)
		text = "";
	if (s->beyond || (s->top == s->top_most && !stream_grow_frames(s))) {
		level = push_beyond(s, domain);
	} else {
		node = child_node(s, domain, text);
		level = attributes || !node ? push_record(s, node, domain, text, attributes) : push_wide(s, node, domain);
	}
	stream_finish();
	return level;
}

/* Nothing has happened yet where this gives up: push_slowly begins anew. */
int range_push(uint32_t domain, const char *text, const struct range_attributes *attributes)
{
	struct stream *s = attributes || !text ? NULL : stream_begin_at_once();
	uint64_t gap, used;
	uint32_t node, word;
	int level;

	if (__builtin_expect(!s, 0))
		return push_slowly(domain, text, attributes);
	node = child_node(s, domain, text);
	used = s->slot->used;
	gap = clock_now() - s->last;
	if (__builtin_expect(node - 1 >= 0xFFFF || gap >= 1 << 14 || used + sizeof word > s->room || s->top == s->top_most, 0)) {
		stream_finish();
		return push_slowly(domain, text, NULL);
	}
	s->last += gap;
	word = node << 16 | (uint32_t)gap << 2 | FORM_PUSH4;
	stream_put_word_at(s->slot, used, word);
	level = open_frame(s, node, domain);
	stream_finish();
	return level;
}

/* ---- closing ---- */

/* A range under others. Its level. */
static int pop_frame(struct stream *s, struct frame *frame)
{
	struct trace_pop_at *record = stream_record(TRACE_POP_AT, sizeof *record);
	int level = (int)frame->level;

	if (record) {
		record->head.node = frame->node;
		record->index = (uint32_t)(frame - s->frames) - 1;
		stream_publish(s);
	}
	memmove(frame, frame + 1, (size_t)(s->top - frame) * sizeof *frame);
	s->top--;
	return level;
}

/* A range of `domain` under open ones of other domains. */
static int pop_below(struct stream *s, uint32_t domain)
{
	struct frame *frame = s->top;

	while (frame > s->frames && frame->domain != domain)
		frame--;
	return frame == s->frames ? RANGE_REFUSED : pop_frame(s, frame);
}

/* Before the frame goes: if this seals, the new payload begins with the range still open. */
static int pop_innermost(struct stream *s)
{
	uint64_t gap;
	uint32_t word;

	if (prepare_short(s, sizeof word, &gap)) {
		word = (uint32_t)gap << 2 | FORM_POP4;
		stream_put_words(s, &word, sizeof word);
	}
	return (int)(s->top--)->level;
}

static __attribute__((noinline)) int pop_slowly(uint32_t domain)
{
	struct stream *s = stream_begin();
	int level;

	if (!s)
		return RANGE_REFUSED;
	if (s->beyond)
		level = (int)(level_in_domain(s, domain) + --s->beyond);
	else if (s->top->domain == domain)
		level = pop_innermost(s);
	else
		level = pop_below(s, domain);
	stream_finish();
	return level;
}

int range_pop(uint32_t domain)
{
	struct stream *s = stream_begin_at_once();
	const struct frame *top;
	uint64_t gap, used;
	uint32_t word;

	if (__builtin_expect(!s, 0))
		return pop_slowly(domain);
	top = s->top;
	used = s->slot->used;
	gap = clock_now() - s->last;
	if (__builtin_expect(gap >= STREAM_GAP_MOST || used + sizeof word > s->room || top->domain != domain || s->beyond, 0)) {
		stream_finish();
		return pop_slowly(domain);
	}
	s->last += gap;
	word = (uint32_t)gap << 2 | FORM_POP4;
	stream_put_word_at(s->slot, used, word);
	s->top--;
	stream_finish();
	return (int)top->level;
}

/* ---- ranges that an object stands for ---- */

static struct cached_place *cached_place(struct stream *s, const char *text, uint32_t link, uint32_t detail)
{
	uint64_t hash = (address_bits(text) >> 32) * (s->top->node | 1) + (uint64_t)(link ^ detail << 8) * 0x9E3779B1u;

	return &s->places[(hash >> 13 ^ hash) % STREAM_PLACES];
}

static __attribute__((noinline)) uint32_t find_place(struct cached_place *place, const char *text, struct cached_place wanted)
{
	size_t bytes = strlen(text);
	uint32_t name = name_id(text, bytes);

	if (!name)
		return 0;
	wanted.node = node_id_about(wanted.parent, name, (enum trace_node_kind)wanted.kind, wanted.link, wanted.detail);
	wanted.chars = name_text(name, &bytes);
	wanted.bytes = (uint32_t)bytes;
	if (wanted.node && bytes < CACHED_BYTES)
		*place = wanted;
	return wanted.node;
}

static inline uint32_t place_node(struct stream *s, const char *text, enum trace_node_kind kind, uint32_t link, uint32_t detail)
{
	struct cached_place *place = cached_place(s, text, link, detail);
	uint32_t parent = s->top->node;

	if (__builtin_expect(place->parent == parent && place->link == link && place->kind == (uint32_t)kind && place->detail == detail &&
				     place->chars && same_text(place->chars, place->bytes, text), 1))
		return place->node;
	return find_place(place, text, (struct cached_place){.parent = parent, .kind = (uint32_t)kind, .link = link, .detail = detail});
}

/* One word, or two, as range_push writes. */
static void put_push(struct stream *s, uint32_t node)
{
	uint64_t gap;
	uint32_t words[2];
	bool wide;

	if (!prepare_short(s, sizeof words, &gap))
		return;
	wide = node > 0xFFFF || gap >= 1 << 14;
	words[0] = wide ? node << 2 | FORM_PUSH8 : node << 16 | (uint32_t)gap << 2 | FORM_PUSH4;
	words[1] = (uint32_t)gap;
	stream_put_words(s, words, wide ? sizeof words : sizeof words[0]);
}

uint32_t range_open(const void *owner, const char *text, enum trace_node_kind kind, uint32_t link, uint32_t detail)
{
	struct stream *s = stream_begin();
	uint32_t node = 0;

	if (!s)
		return 0;
	if (s->top < s->top_most || stream_grow_frames(s))
		node = place_node(s, text, kind, link, detail);
	if (node) {
		put_push(s, node);
		open_frame(s, node, FRAME_OWNED);
		s->top->owner = owner;
	} else {
		stream_lose(s, s->top < s->top_most ? TRACE_LOST_NO_MEMORY : TRACE_LOST_TOO_DEEP);
	}
	stream_finish();
	return node;
}

bool range_close(const void *owner)
{
	struct stream *s = stream_begin();
	struct frame *frame;

	if (!s)
		return false;
	frame = s->top;
	if (!(frame->domain == FRAME_OWNED && frame->owner == owner))
		while (frame > s->frames && !(frame->domain == FRAME_OWNED && frame->owner == owner))
			frame--;
	if (frame == s->top && frame > s->frames)
		pop_innermost(s);
	else if (frame > s->frames)
		pop_frame(s, frame);
	stream_finish();
	return frame > s->frames;
}

/* ---- start/end and marks ---- */

static void put_plain(enum trace_kind kind, uint64_t id, uint32_t domain, const char *text, const struct range_attributes *attributes)
{
	struct stream *s = stream_begin();
	struct trace_range *record;

	if (!s)
		return;
	if (!text)
		text = "";
	record = put_range(kind, domain, name_id(text, strlen(text)), text, attributes);
	if (record) {
		record->id = id;
		stream_publish(s);
	}
	stream_finish();
}

void range_start_as(uint64_t id, uint32_t domain, const char *text, const struct range_attributes *attributes)
{
	put_plain(TRACE_START, id, domain, text, attributes);
}

uint64_t range_start(uint32_t domain, const char *text, const struct range_attributes *attributes)
{
	static uint64_t last;
	uint64_t id = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);

	range_start_as(id, domain, text, attributes);
	return id;
}

void range_end(uint64_t id)
{
	struct stream *s = stream_begin();
	struct trace_end *record;

	if (!s)
		return;
	record = stream_record(TRACE_END, sizeof *record);
	if (record) {
		record->id = id;
		stream_publish(s);
	}
	stream_finish();
}

void range_mark(uint32_t domain, const char *text, const struct range_attributes *attributes)
{
	put_plain(TRACE_MARK, 0, domain, text, attributes);
}
