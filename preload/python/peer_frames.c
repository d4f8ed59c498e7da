/* SPDX-License-Identifier: MIT */
#include "preload/python/peer_frames.h"

#include "collector/process/fork_wiped_memory.h"
#include "preload/python/peer_code.h"
#include "preload/python/peer_memory.h"
#include "preload/python/peer_start.h"
#include "preload/python/peer_threads.h"
#include "preload/python/python.h"

#include <string.h>
#include <unistd.h>

#define PAGE 4096u
#define PAGES 32u        /* pages that are kept while a chain is read */
#define FIRST_PAGES 4u   /* that are read together: the part of the frame stack below a frame */
#define FRAME_BYTES 120u /* of a frame: all members that are read */
#define TRIES 3u
#define OWNED_BY_GENERATOR 1 /* the owner of a frame, from 3.11 on */
/* The flags of a code object before 3.11, in front of its first line: generator, coroutine,
 * asynchronous generator. */
#define CODE_GENERATOR 0x2a0u

/* A chain of frames, the innermost first. */
struct frame_chain {
	size_t count;
	struct peer_frame frames[PEER_FRAMES_MAX];
};

/* The innermost frame and its instruction: the part that changes first. */
struct chain_top {
	uintptr_t word; /* of the thread state: the frame, or what has it */
	uintptr_t frame;
	uint64_t instruction;
};

static const struct python_layout *layout;
static bool stopped; /* the layout is wrong */

static struct peer_reader {
	struct frame_chain chains[2];
	unsigned pages, next_page;
	uintptr_t page[PAGES];
	uint8_t bytes[PAGES][PAGE];
	/* Before 3.11: the frames of the last chain, the innermost first, and copies of them. */
	unsigned guesses, next_guess;
	uintptr_t guess[PEER_READ_MANY_MAX];
	uint8_t guessed[PEER_READ_MANY_MAX][FRAME_BYTES];
} * reader;

/* ---- memory, by pages: the frames of 3.11 and later are side by side ---- */

/* Reads the page of `address` and those below it. */
static bool read_pages(uintptr_t address)
{
	const uintptr_t last = address & ~(uintptr_t)(PAGE - 1);
	uintptr_t from[FIRST_PAGES];
	size_t got;

	if (reader->pages + FIRST_PAGES > PAGES)
		reader->pages = 0;
	for (unsigned i = 0; i < FIRST_PAGES; i++)
		from[i] = last - i * PAGE;
	got = peer_read_many(reader->bytes[reader->pages], from, FIRST_PAGES, PAGE);
	for (size_t i = 0; i < got; i++)
		reader->page[reader->pages++] = from[i];
	return got > 0;
}

/* Returns a copy of the byte at `address` and of the rest of its page; NULL: unreadable. */
static const uint8_t *find_page(uintptr_t address)
{
	const uintptr_t page = address & ~(uintptr_t)(PAGE - 1);

	for (unsigned tries = 0; tries < 2; tries++) {
		for (unsigned i = 0; i < reader->pages; i++)
			if (reader->page[i] == page)
				return reader->bytes[i] + (address - page);
		if (!read_pages(address))
			return NULL;
	}
	return NULL;
}

static bool read_by_pages(uint8_t *to, uintptr_t from, size_t bytes)
{
	size_t here = PAGE - (from & (PAGE - 1));
	const uint8_t *at;

	here = here < bytes ? here : bytes;
	if (!(at = find_page(from)))
		return false;
	memcpy(to, at, here);
	return here == bytes || read_by_pages(to + here, from + here, bytes - here);
}

/* ---- one chain ---- */

static uint64_t word_at(const uint8_t *bytes, size_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof word);
	return word;
}

/* Decodes a frame; code 0: it is one of the interpreter itself. Returns the address of its
 * caller. */
static uintptr_t decode_frame(const uint8_t *bytes, struct peer_frame *frame)
{
	int32_t index;

	frame->code = (uintptr_t)word_at(bytes, layout->frame_code);
	if (layout->instruction_is_index) {
		memcpy(&index, bytes + layout->frame_instruction, sizeof index);
		frame->offset = (int64_t)index * layout->index_scale;
		frame->is_entry = true;
		return (uintptr_t)word_at(bytes, layout->frame_previous);
	}
	/* 3.14 marks references in the lowest two bits. */
	frame->code = bytes[layout->frame_owner] < layout->owner_end ? frame->code & ~(uintptr_t)3
								     : 0;
	frame->offset = (int64_t)(word_at(bytes, layout->frame_instruction) -
				  (frame->code + layout->code_bytes));
	/* 3.11 has a byte for it, in front of the owner. Later versions have a frame without code
	 * below an entry frame. */
	frame->is_entry = python.minor == 11 && bytes[layout->frame_owner - 1];
	return (uintptr_t)word_at(bytes, layout->frame_previous);
}

/* Before 3.11 each frame is an object of its own. Most of them are those of the last chain, which
 * are read with one system call. */
static void read_guesses(const struct frame_chain *last)
{
	const size_t count = last->count < PEER_READ_MANY_MAX ? last->count : PEER_READ_MANY_MAX;
	const struct peer_frame *from = last->frames + last->count - count;

	for (size_t i = 0; i < count; i++)
		reader->guess[i] = from[i].address;
	reader->guesses = (unsigned)peer_read_many(
		reader->guessed, reader->guess, count, FRAME_BYTES);
	reader->next_guess = 0;
}

static bool read_frame_object(uintptr_t address, uint8_t bytes[FRAME_BYTES])
{
	for (unsigned i = reader->next_guess; i < reader->guesses; i++)
		if (reader->guess[i] == address) {
			reader->next_guess = i + 1;
			memcpy(bytes, reader->guessed[i], FRAME_BYTES);
			return true;
		}
	return peer_read(bytes, address, FRAME_BYTES);
}

static bool read_frame(uintptr_t address, uint8_t bytes[FRAME_BYTES])
{
	return layout->instruction_is_index ? read_frame_object(address, bytes)
					    : read_by_pages(bytes, address, FRAME_BYTES);
}

/* Whether the chain ends at a frame that has no caller. A generator has none between two steps,
 * so a chain that ends at one was read while that yielded. `last`: copy of the last frame that was
 * read. */
static bool is_whole(const struct frame_chain *chain, const uint8_t *last)
{
	const struct peer_frame *outermost = &chain->frames[chain->count - 1];
	uint32_t flags;

	if (!chain->count)
		return true;
	if (layout->instruction_is_index)
		return peer_read(&flags, outermost->code + layout->code_line - sizeof flags,
			       sizeof flags) &&
		       !(flags & CODE_GENERATOR);
	if (python.minor == 11)
		return outermost->is_entry && last[layout->frame_owner] != OWNED_BY_GENERATOR;
	return last[layout->frame_owner] >= layout->owner_end;
}

/* Reads a chain over the last one. Returns false if a frame cannot be read, there are too many, or
 * callers are missing. */
static bool read_chain(uintptr_t address, struct frame_chain *chain)
{
	uint8_t bytes[FRAME_BYTES];
	struct peer_frame frame;

	reader->pages = 0;
	if (layout->instruction_is_index)
		read_guesses(chain);
	for (chain->count = 0; address;) {
		if (chain->count == PEER_FRAMES_MAX || !read_frame(address, bytes))
			return false;
		frame.address = address;
		address = decode_frame(bytes, &frame);
		if (frame.code)
			chain->frames[chain->count++] = frame;
		else if (chain->count)
			chain->frames[chain->count - 1].is_entry = true;
	}
	return is_whole(chain, bytes);
}

/* ---- a thread that runs meanwhile ---- */

static size_t instruction_bytes(void)
{
	return layout->instruction_is_index ? 4 : 8;
}

/* Reads the innermost frame. Returns false if `state` is not a thread state of this thread. */
static bool read_top(uintptr_t state, uint32_t tid, struct chain_top *top)
{
	uint8_t bytes[PEER_THREAD_BYTES];

	*top = (struct chain_top){ .frame = 0 };
	if (!peer_read(bytes, state, sizeof bytes) || peer_thread_tid(bytes) != tid)
		return false;
	top->frame = top->word = (uintptr_t)word_at(bytes, layout->thread_frame);
	if (layout->has_cframe &&
		!peer_read(&top->frame, top->word + layout->cframe_frame, sizeof top->frame))
		return false;
	return !top->frame || peer_read(&top->instruction, top->frame + layout->frame_instruction,
				      instruction_bytes());
}

/* Whether the innermost frame is still as it was. Its parts are read by one system call. */
static bool has_stayed(uintptr_t state, const struct chain_top *top)
{
	const uintptr_t from[] = { state + layout->thread_frame,
		top->frame + layout->frame_instruction, top->word + layout->cframe_frame };
	const size_t count = !top->frame ? 1 : layout->has_cframe ? 3 : 2;
	uint64_t now[3] = { 0 };

	return peer_read_many(now, from, count, sizeof *now) == count && now[0] == top->word &&
	       !memcmp(&now[1], &top->instruction, top->frame ? instruction_bytes() : 0) &&
	       (count < 3 || now[2] == top->frame);
}

/* Removes the inner frames that `chain` does not have in common with `other`. */
static void keep_common(struct frame_chain *chain, const struct frame_chain *other)
{
	size_t common = 0;

	while (common < chain->count && common < other->count) {
		const struct peer_frame *a = &chain->frames[chain->count - 1 - common],
					*b = &other->frames[other->count - 1 - common];

		if (a->address != b->address || a->code != b->code || a->offset != b->offset)
			break;
		common++;
	}
	memmove(chain->frames, chain->frames + chain->count - common,
		common * sizeof *chain->frames);
	chain->count = common;
}

/* Reads the chain of a thread until it has not changed meanwhile. Returns the chain; NULL: it is
 * unreadable. */
static struct frame_chain *read_stable(uintptr_t state, uint32_t tid, bool *moved)
{
	struct chain_top top;
	bool read[2] = { false, false };

	*moved = false;
	for (unsigned i = 0; i < TRIES; i++) {
		struct frame_chain *chain = &reader->chains[i % 2];

		if (!read_top(state, tid, &top))
			return NULL;
		read[i % 2] = read_chain(top.frame, chain);
		if (read[i % 2] && has_stayed(state, &top))
			return chain;
	}
	if (!read[0] || !read[1])
		return NULL;
	*moved = true;
	keep_common(&reader->chains[0], &reader->chains[1]);
	return &reader->chains[0];
}

const char *peer_frames_prepare(const struct python_layout *used)
{
	const char *trouble = peer_threads_prepare(used);

	if (trouble)
		return trouble;
	if (!reader)
		reader = fork_kept_alloc(sizeof *reader);
	if (!reader)
		return "there is no memory for them";
	__atomic_store_n(&layout, used, __ATOMIC_RELEASE);
	return NULL;
}

bool peer_frames_are_read(void)
{
	return __atomic_load_n(&layout, __ATOMIC_ACQUIRE) != NULL;
}

void peer_frames_stop(void)
{
	__atomic_store_n(&stopped, true, __ATOMIC_RELAXED);
}

void peer_frames_find_threads(void)
{
	if (peer_frames_are_read())
		peer_threads_update();
}

void peer_frames_read(struct sample *sample)
{
	struct sampled_thread *thread = sample->thread;
	struct frame_chain *chain;
	bool moved;

	if (!__atomic_load_n(&layout, __ATOMIC_ACQUIRE) ||
		__atomic_load_n(&stopped, __ATOMIC_RELAXED)) {
		if (peer_start_is_waiting() && thread->tid == (uint32_t)getpid())
			sample->flags |= TRACE_SAMPLE_NO_PYTHON;
		return;
	}
	if (!thread->python)
		peer_threads_update();
	if (!thread->python)
		return;
	chain = read_stable(thread->python, thread->tid, &moved);
	if (chain)
		sample->python = peer_frames_id(layout, chain->frames, chain->count);
	if (moved)
		sample->flags |= TRACE_SAMPLE_MOVED;
	if (!chain || (chain->count && !sample->python)) {
		sample->flags |= TRACE_SAMPLE_NO_PYTHON;
		thread->python = 0; /* looked up again */
	}
}
