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

static inline struct cached_child *near_place(struct stream *s, uint32_t parent, const char *text)
{
	return &s->near[(parent * 2 + ((uintptr_t)text >> 4 & 1)) % STREAM_NEAR];
}

static inline struct cached_child *far_place(struct stream *s, uint32_t parent, const char *text)
{
	return &s->far[(uint32_t)(address_bits(text) >> 32) * (parent | 1) >> 18];
}
static_assert(STREAM_FAR == 1 << 14, "far_place takes 14 bits");

#if defined(__SSE2__)
static inline __m128i equal_16(const char *a, const char *b)
{
	__m128i x = _mm_loadu_si128((const __m128i *)(const void *)a), y = _mm_loadu_si128((const __m128i *)(const void *)b);

	return _mm_cmpeq_epi8(x, y);
}

static inline bool is_all(__m128i bytes)
{
	return _mm_movemask_epi8(bytes) == 0xFFFF;
}

/* strcmp, for a text whose length we know; without a call, and false also where that will not do. Most texts take one question of 16 bytes, or one of three
 * times 16 that overlap. Of a `text` that is shorter than ours, and only then, bytes behind its end are looked at, in the same page. */
__attribute__((no_sanitize("address"))) static inline bool same_at_once(const char *kept, size_t bytes, const char *text)
{
	size_t last = bytes + 1 - 16, middle = last < 16 ? last : 16;
	__m128i first;

	if (__builtin_expect(((uintptr_t)text & 4095) + bytes + 16 > 4096, 0)) /* always so for CACHED_LONG */
		return false;
	first = equal_16(kept, text);
	if (bytes < 15)
		return ((unsigned)_mm_movemask_epi8(first) + 1) % (2u << bytes) == 0;
	return is_all(_mm_and_si128(_mm_and_si128(first, equal_16(kept + last, text + last)), equal_16(kept + middle, text + middle)));
}
#else
static inline bool same_at_once(const char *kept, size_t bytes, const char *text)
{
	return bytes < CACHED_SHORT_OF && !strncmp(kept, text, bytes + 1);
}
#endif

/* Only the text itself decides: programs reuse their buffers. A kept text that is gone: this is a child, forked since its place was found. */
static inline bool is_kept_at_once(const char *kept, size_t bytes, const char *text)
{
	return kept && same_at_once(kept, bytes, text);
}

static inline bool is_kept(const char *kept, size_t bytes, const char *text)
{
	return kept && (same_at_once(kept, bytes, text) || !strcmp(kept, text));
}

static inline bool is_child(const struct cached_child *place, uint32_t key, const char *text)
{
	return place->key == key && is_kept(place->chars, place->bytes, text);
}

static uint32_t cached_bytes(size_t bytes)
{
	return bytes < CACHED_SHORT_OF ? (uint32_t)bytes : CACHED_LONG;
}

/* Where two children of a parent would have the same place near it, all of them go where there is more room. So it is with the root soon. */
static void cache_child(struct stream *s, const char *text, struct cached_child child)
{
	struct cached_child *near = near_place(s, s->node, text);

	if (near->key == child.key)
		*near = (struct cached_child){.key = CACHED_MANY, .node = s->node & 0xFFFFF};
	if (near->key == CACHED_MANY && near->node == s->node)
		*far_place(s, s->node, text) = child;
	else
		*near = child;
}

/* Names and nodes are looked up by content, or made. 0: it gets no id of its own. */
static uint32_t find_child(struct stream *s, uint32_t domain, enum trace_node_kind kind, const char *text)
{
	size_t bytes = strlen(text);
	uint32_t name = name_id(text, bytes);

	return name ? node_id(s->node, name, domain, kind) : 0;
}

static uint32_t find_and_cache(struct stream *s, uint32_t sort, const char *text)
{
	const bool is_domain = sort < CACHED_DOMAINS;
	uint32_t node = find_child(s, is_domain ? sort : 0, is_domain ? TRACE_NODE_RANGE : (enum trace_node_kind)(sort - CACHED_DOMAINS), text);
	size_t bytes = strlen(text);

	if (node)
		cache_child(s, text, (struct cached_child){name_text(name_id(text, bytes), &bytes), CACHED_KEY(s->node, sort),
							   cached_bytes(bytes) & 0xFFF, node & 0xFFFFF});
	return node;
}

static uint32_t child_node(struct stream *s, uint32_t sort, const char *text)
{
	const struct cached_child *near = near_place(s, s->node, text), *far = far_place(s, s->node, text);
	uint32_t key = CACHED_KEY(s->node, sort);

	if (is_child(near, key, text))
		return near->node;
	return is_child(far, key, text) ? far->node : find_and_cache(s, sort, text);
}

/* The place of the cache where this child would be, if it has its parent's key. */
static inline const struct cached_child *likely_child(struct stream *s, uint32_t sort, const char *text)
{
	const uint32_t key = CACHED_KEY(s->node, sort);
	const struct cached_child *child = near_place(s, s->node, text);

	if (__builtin_expect(child->key == key, 1))
		return child;
	child = far_place(s, s->node, text);
	return child->key == key ? child : NULL;
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

	s->top[1].begin = s->last;
	s->top[1].node = node;
	s->top[1].domain = domain;
	s->top[1].level = level;
	stream_set_top(s, s->top + 1);
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
	uint32_t node = node_id(s->node, 0, domain, TRACE_NODE_RANGE);

	return node ? node : s->node;
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
	stream_settle(s);
	trace_lose(TRACE_LOST_TOO_DEEP, 1); /* not the stream's loss: its row of open ranges stays right */
	return (int)(level_in_domain(s, domain) + s->beyond - 1);
}

int range_push(uint32_t domain, const char *text, const struct range_attributes *attributes)
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
		node = domain < CACHED_DOMAINS ? child_node(s, domain, text) : find_child(s, domain, TRACE_NODE_RANGE, text);
		level = attributes || !node ? push_record(s, node, domain, text, attributes) : push_wide(s, node, domain);
	}
	stream_finish();
	return level;
}

static __attribute__((noinline)) int push_slowly(const char *text, struct stream *taken)
{
	stream_give_back(taken);
	return range_push(0, text, NULL);
}

/* The hot path, without a call. Reading the counter waits for what stands before it, so little does: the text is compared, and all else loaded, behind
 * it, while the next event comes near. Nothing has happened yet where it gives up. */
int range_push_plain(const char *text)
{
	struct stream *s = stream_take();
	const struct cached_child *child;
	const struct trace_block *slot;
	struct frame *top;
	uint64_t now, gap, used;
	uint32_t node;

	if (__builtin_expect(!s || !text || !(child = likely_child(s, 0, text)), 0))
		return push_slowly(text, s);
	now = clock_quick();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	slot = s->slot;
	if (__builtin_expect(!is_kept_at_once(child->chars, child->bytes, text) || !slot, 0))
		return push_slowly(text, s);
	gap = now - s->last;
	node = child->node;
	top = s->top;
	used = slot->used;
	if (__builtin_expect(gap >= 1 << 14 || used + sizeof(uint32_t) > s->quick_room || node > 0xFFFF || top == s->top_most || top->domain + 1 > 1, 0))
		return push_slowly(text, s);
	s->last = now;
	stream_put_word_at(s->slot, used, node << 16 | (uint32_t)gap << 2 | FORM_PUSH4);
	top[1].begin = now;
	top[1].node = s->node = node;
	top[1].domain = 0;
	top[1].level = top->level + 1;
	s->top = top + 1;
	stream_give_back(s);
	return (int)top[1].level;
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
	stream_set_top(s, s->top - 1);
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
	int level;

	if (prepare_short(s, sizeof word, &gap)) {
		word = (uint32_t)gap << 2 | FORM_POP4;
		stream_put_words(s, &word, sizeof word);
	}
	level = (int)s->top->level;
	stream_set_top(s, s->top - 1);
	return level;
}

int range_pop(uint32_t domain)
{
	struct stream *s = stream_begin();
	int level;

	if (!s)
		return RANGE_REFUSED;
	if (s->beyond) {
		level = (int)(level_in_domain(s, domain) + --s->beyond);
		stream_settle(s);
	} else if (s->top->domain == domain) {
		level = pop_innermost(s);
	} else {
		level = pop_below(s, domain);
	}
	stream_finish();
	return level;
}

static __attribute__((noinline)) int pop_slowly(struct stream *taken)
{
	stream_give_back(taken);
	return range_pop(0);
}

int range_pop_plain(void)
{
	struct stream *s = stream_take();
	struct trace_block *slot;
	struct frame *top;
	uint64_t now, gap, used;

	if (__builtin_expect(!s, 0))
		return pop_slowly(s);
	now = clock_quick();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	slot = s->slot;
	if (__builtin_expect(!slot, 0))
		return pop_slowly(s);
	gap = now - s->last;
	top = s->top;
	used = slot->used;
	if (__builtin_expect(gap >= STREAM_GAP_MOST || used + sizeof(uint32_t) > s->quick_room || top->domain != 0, 0))
		return pop_slowly(s);
	s->last = now;
	stream_put_word_at(slot, used, (uint32_t)gap << 2 | FORM_POP4);
	stream_set_top(s, top - 1);
	stream_give_back(s);
	return (int)top->level;
}

/* ---- ranges that an object stands for ---- */

static struct cached_place *cached_place(struct stream *s, const char *text, uint32_t link, uint32_t detail)
{
	uint64_t hash = (address_bits(text) >> 32) * (s->node | 1) + (uint64_t)(link ^ detail << 8) * 0x9E3779B1u;

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
	wanted.bytes = cached_bytes(bytes);
	if (wanted.node)
		*place = wanted;
	return wanted.node;
}

static uint32_t place_node(struct stream *s, const char *text, enum trace_node_kind kind, uint32_t link, uint32_t detail)
{
	struct cached_place *place = cached_place(s, text, link, detail);
	const struct cached_place wanted = {.parent = s->node, .kind = (uint32_t)kind, .link = link, .detail = detail};

	if (place->parent == wanted.parent && place->link == link && place->kind == wanted.kind && place->detail == detail &&
	    is_kept(place->chars, place->bytes, text))
		return place->node;
	return find_place(place, text, wanted);
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

static void put_owned(struct stream *s, uint32_t node, const void *owner)
{
	put_push(s, node);
	open_frame(s, node, FRAME_OWNED);
	s->top->owner = owner;
}

static __attribute__((noinline)) uint32_t open_slowly(const void *owner, const char *text, enum trace_node_kind kind, uint32_t link, uint32_t detail)
{
	struct stream *s = stream_begin();
	uint32_t node = 0;

	if (!s)
		return 0;
	if (s->top == s->top_most && !stream_grow_frames(s)) {
		stream_lose(s, TRACE_LOST_TOO_DEEP);
	} else {
		node = link || detail ? place_node(s, text, kind, link, detail) : child_node(s, CACHED_SORT(kind), text);
		if (node)
			put_owned(s, node, owner);
		else
			stream_lose(s, TRACE_LOST_NO_MEMORY);
	}
	stream_finish();
	return node;
}

/* As range_push_plain. */
uint32_t range_open(const void *owner, const char *text, enum trace_node_kind kind, uint32_t link, uint32_t detail)
{
	struct stream *s = link | detail ? NULL : stream_take();
	const struct cached_child *child;
	const struct trace_block *slot;
	struct frame *top;
	uint64_t now, gap, used;
	uint32_t node;

	if (__builtin_expect(!s, 0))
		return open_slowly(owner, text, kind, link, detail);
	child = likely_child(s, CACHED_SORT(kind), text);
	now = clock_quick();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	slot = s->slot;
	if (__builtin_expect(!child || !slot || !is_kept_at_once(child->chars, child->bytes, text), 0))
		goto slowly;
	gap = now - s->last;
	node = child->node;
	top = s->top;
	used = slot->used;
	if (__builtin_expect(gap >= 1 << 14 || used + sizeof(uint32_t) > s->quick_room || node > 0xFFFF || top == s->top_most, 0))
		goto slowly;
	s->last = now;
	stream_put_word_at(s->slot, used, node << 16 | (uint32_t)gap << 2 | FORM_PUSH4);
	top[1] = (struct frame){.begin = now, .node = node, .domain = FRAME_OWNED, .owner = owner};
	stream_set_top(s, top + 1);
	stream_give_back(s);
	return node;
slowly:
	stream_give_back(s);
	return open_slowly(owner, text, kind, link, detail);
}

static inline bool is_owned_by(const struct frame *frame, const void *owner)
{
	return frame->domain == FRAME_OWNED && frame->owner == owner;
}

static __attribute__((noinline)) bool close_slowly(const void *owner)
{
	struct stream *s = stream_here.mine;
	struct frame *frame;
	bool found;

	if (!s || !s->slot || !(s = stream_begin())) /* where nothing is open, as in a forked child, no file is begun either */
		return false;
	frame = s->top;
	while (frame > s->frames && !is_owned_by(frame, owner))
		frame--;
	found = frame > s->frames;
	if (found && frame == s->top)
		pop_innermost(s);
	else if (found)
		pop_frame(s, frame);
	stream_finish();
	return found;
}

bool range_close(const void *owner)
{
	struct stream *s = stream_take();
	struct trace_block *slot;
	struct frame *top;
	uint64_t now, gap, used;

	if (__builtin_expect(!s, 0))
		return close_slowly(owner);
	now = clock_quick();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	slot = s->slot;
	top = s->top;
	if (__builtin_expect(!slot || !is_owned_by(top, owner), 0))
		goto slowly;
	gap = now - s->last;
	used = slot->used;
	if (__builtin_expect(gap >= STREAM_GAP_MOST || used + sizeof(uint32_t) > s->quick_room, 0))
		goto slowly;
	s->last = now;
	stream_put_word_at(slot, used, (uint32_t)gap << 2 | FORM_POP4);
	stream_set_top(s, top - 1);
	stream_give_back(s);
	return true;
slowly:
	stream_give_back(s);
	return close_slowly(owner);
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
