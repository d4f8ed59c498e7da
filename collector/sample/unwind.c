/* SPDX-License-Identifier: MIT
 * Rules are kept by the address that they were read for, because the same return addresses come
 * again and again. What is kept is dropped when an object is unloaded.
 *
 * The thread's stack is seen through two windows. One is the copy that came with the sample, which
 * is extended by what follows it in memory when words above it are needed. The other is moved to
 * what is elsewhere, as the stack that a signal handler had interrupted.
 */
#include "collector/sample/unwind.h"

#include "collector/process/fork_wiped_memory.h"
#include "collector/sample/call_site.h"
#include "collector/sample/process_memory.h"
#include "collector/sample/unwind_expression.h"

#include <string.h>

#define RULES_KEPT 16384u /* a power of two */
#define WINDOW_BYTES_MAX ((size_t)256 << 10)
#define READ_AT_ONCE ((size_t)64 << 10)
#define ROOM_READ_AT_ONCE ((size_t)128 << 10)
#define OTHER_BYTES ((size_t)16 << 10)
#define SEARCH_BYTES (64u << 10)
#define CODE_WITHOUT_RULES_MAX (1u << 20) /* bytes of a function without rules */
#define PAGE_BYTES 4096u
#define ROOM_BYTES_MAX (1u << 20) /* on the stack, for data of a function without rules */
#define KEPT_BYTES 256u           /* above the stack pointer, where the former one may be kept */
#define SAVED_BYTES 256u          /* of registers that a function saves, and its return address */
#define CALLERS_TRIED 16u
#define JUDGED_MAX 64u
#define LIBRARY_BYTES (32u << 20) /* of code, in which a function's callers are expected */
#define LOWEST_ADDRESS 65536u /* what is below is not memory: vm.mmap_min_addr */

/* Registers that a function preserves for its caller. */
#define PRESERVED                                                                      \
	(1u << UNWIND_RBX | 1u << UNWIND_RBP | 0xfu << UNWIND_R12 | 1u << UNWIND_RSP | \
		1u << UNWIND_RETURN)

#define LOCATION (1u << UNWIND_RSP | 1u << UNWIND_RETURN)

enum kept_answer { NOT_KNOWN, NO, YES };

/* What is known of an address. */
struct kept_rule {
	uint64_t pc;
	uint8_t has_rule, ends_call; /* enum kept_answer; ends_call: of the address behind it */
	struct unwind_rule rule;
};

/* A copy of the memory [from, to). */
struct window {
	const uint8_t *bytes;
	uint64_t from, to;
};

/* How well a word fits as the return address that is searched; the better the greater. */
enum fit { FITS_NOT, FITS_POORLY, FITS_PERHAPS, FITS };

/* A word of the stack that may be the return address that is searched. */
struct candidate {
	uint64_t at, word; /* its address and its value */
	enum fit fit;
};

struct unwinder {
	struct code_map map;
	struct unwind_expressions expressions;
	struct unwind_scratch scratch;
	struct kept_rule rules[RULES_KEPT];
	struct unwind_registers begun; /* of the thread, where the walk begins */
	struct window sampled, other;
	uint8_t sampled_bytes[WINDOW_BYTES_MAX], other_bytes[OTHER_BYTES];
	struct candidate judged[JUDGED_MAX]; /* in the search that is made */
	unsigned judged_count;
};

/* One walk. */
struct walk {
	struct unwinder *u;
	struct unwind_registers registers;
	bool exact; /* the address is of the next instruction, and not behind a call */
	unsigned guesses;
};

enum step_result {
	STEP_OK,
	STEP_LAST,    /* the frame is the thread's first */
	STEP_NO_RULE, /* the rule is missing, or needs a register that is not known */
	STEP_UNREADABLE
};

/* ---- what is kept of addresses ---- */

static struct kept_rule *kept_rule_of(struct unwinder *u, uint64_t pc)
{
	struct kept_rule *k =
		&u->rules[(pc * UINT64_C(0x9e3779b97f4a7c15)) >> 50 & (RULES_KEPT - 1)];

	if (k->pc != pc) {
		k->pc = pc;
		k->has_rule = k->ends_call = NOT_KNOWN;
	}
	return k;
}

/* Returns NULL if there is no rule for `pc`. */
static const struct unwind_rule *find_rule(struct unwinder *u, uint64_t pc)
{
	struct kept_rule *k = kept_rule_of(u, pc);
	struct code_object *o;

	if (k->has_rule == NOT_KNOWN) {
		o = code_map_find(&u->map, pc);
		k->has_rule = o && unwind_rule_read(o, pc, &k->rule, &u->expressions, &u->scratch)
				      ? YES
				      : NO;
	}
	return k->has_rule == YES ? &k->rule : NULL;
}

/* Whether `word` is an address that a function with unwind rules returns to. */
static bool is_return_address(struct unwinder *u, uint64_t word)
{
	const struct code_object *o;
	struct kept_rule *k;

	if (word - 8 < u->map.code_start || word >= u->map.code_end)
		return false;
	o = code_map_find(&u->map, word - 1);
	if (!o || word - 8 < o->code_start || word >= o->code_end)
		return false;
	k = kept_rule_of(u, word - 1);
	if (k->ends_call == NOT_KNOWN)
		k->ends_call = call_site_ends_at(word) ? YES : NO;
	return k->ends_call == YES && find_rule(u, word - 1);
}

/* ---- the thread's memory ---- */

/* Appends to the sampled stack what follows it in memory. */
static void extend_sampled(struct unwinder *u, size_t bytes)
{
	struct window *w = &u->sampled;
	const size_t kept = (size_t)(w->to - w->from);
	size_t room = WINDOW_BYTES_MAX - kept;

	if (w->bytes != u->sampled_bytes) {
		if (kept)
			memcpy(u->sampled_bytes, w->bytes, kept);
		w->bytes = u->sampled_bytes;
	}
	room = room < bytes ? room : bytes;
	w->to += process_memory_copy(u->sampled_bytes + kept, w->to, room);
}

static void move_other(struct unwinder *u, uint64_t from)
{
	u->other.bytes = u->other_bytes;
	u->other.from = from;
	u->other.to = from + process_memory_copy(u->other_bytes, from, OTHER_BYTES);
}

static bool is_in_window(const struct window *w, uint64_t address)
{
	return address >= w->from && address + 8 <= w->to;
}

/* Returns the window that holds the word at `address`, or NULL. */
static const struct window *window_with(struct unwinder *u, uint64_t address)
{
	const struct window *w = &u->sampled;

	if (is_in_window(w, address))
		return w;
	if (address >= w->from && address < w->to + READ_AT_ONCE - 8 &&
		w->to - w->from < WINDOW_BYTES_MAX)
		extend_sampled(u, READ_AT_ONCE);
	if (is_in_window(w, address))
		return w;
	if (!is_in_window(&u->other, address))
		move_other(u, address & ~UINT64_C(7));
	return is_in_window(&u->other, address) ? &u->other : NULL;
}

static bool read_word(void *walk, uint64_t address, uint64_t *word)
{
	const struct walk *w = walk;
	const struct window *window;

	if (address < LOWEST_ADDRESS || address > UINT64_MAX - READ_AT_ONCE)
		return false;
	window = window_with(w->u, address);
	if (window)
		memcpy(word, window->bytes + (address - window->from), 8);
	return window != NULL;
}

/* ---- one step ---- */

static bool is_known(const struct walk *w, unsigned reg)
{
	return w->registers.known >> reg & 1;
}

static bool compute(struct walk *w, int32_t expression, const uint64_t *first, uint64_t *result)
{
	return unwind_expression_compute(
		&w->u->expressions.all[expression], &w->registers, first, read_word, w, result);
}

static bool compute_cfa(struct walk *w, const struct unwind_rule *rule, uint64_t *cfa)
{
	if (rule->cfa_is_expression)
		return compute(w, rule->cfa_value, NULL, cfa);
	*cfa = w->registers.value[rule->cfa_register] + (uint64_t)(int64_t)rule->cfa_value;
	return is_known(w, rule->cfa_register);
}

/* Computes the caller's value of `reg`. Returns false if it is not known. */
static bool restore_value(
	struct walk *w, const struct unwind_rule *rule, unsigned reg, uint64_t cfa, uint64_t *value)
{
	const int32_t rule_value = rule->value[reg];

	switch (rule->place[reg]) {
	case UNWIND_SAME:
		*value = reg == UNWIND_RSP ? cfa : w->registers.value[reg];
		return reg == UNWIND_RSP ||
		       (is_known(w, reg) && (PRESERVED >> reg & 1 || rule->signal_frame));
	case UNWIND_AT_CFA:
		return read_word(w, cfa + (uint64_t)(int64_t)rule_value, value);
	case UNWIND_CFA_PLUS:
		*value = cfa + (uint64_t)(int64_t)rule_value;
		return true;
	case UNWIND_IN_REGISTER:
		*value = w->registers.value[rule_value];
		return is_known(w, (unsigned)rule_value);
	case UNWIND_AT_EXPRESSION:
		return compute(w, rule_value, &cfa, value) && read_word(w, *value, value);
	case UNWIND_IS_EXPRESSION:
		return compute(w, rule_value, &cfa, value);
	default:
		return false;
	}
}

/* Continues in the caller of the frame whose rule and CFA are given. A caller's stack pointer is
 * above its callee's, with two exceptions: a signal handler may have a stack of its own, and the
 * innermost function may have replaced it already, as longjmp does. The return address of a
 * thread's first function may be 0. But a search that went wrong finds a 0 soon. */
static enum step_result enter_caller(struct walk *w, const struct unwind_rule *rule, uint64_t cfa)
{
	struct unwind_registers caller = { .known = 0 };
	uint64_t value = 0;

	for (unsigned reg = UNWIND_REGISTERS; reg-- > 0;) {
		if (!restore_value(w, rule, reg, cfa, &value))
			continue;
		caller.value[reg] = value;
		caller.known |= 1u << reg;
	}
	if ((caller.known & LOCATION) != LOCATION ||
		(!rule->signal_frame &&
			caller.value[UNWIND_RSP] < w->registers.value[UNWIND_RSP] + !w->exact))
		return STEP_UNREADABLE;
	if (!caller.value[UNWIND_RETURN])
		return w->guesses ? STEP_UNREADABLE : STEP_LAST;
	w->registers = caller;
	w->exact = rule->signal_frame;
	return STEP_OK;
}

/* Continues in the caller by the frame's rule. */
static enum step_result step(struct walk *w)
{
	const struct unwind_rule *rule = find_rule(
		w->u, w->registers.value[UNWIND_RETURN] - !w->exact);
	uint64_t cfa;

	if (!rule)
		return STEP_NO_RULE;
	if (rule->place[UNWIND_RETURN] == UNWIND_UNDEFINED)
		return STEP_LAST;
	if (!compute_cfa(w, rule, &cfa))
		return STEP_NO_RULE;
	return enter_caller(w, rule, cfa);
}

/* ---- the search for a caller ---- */

/* Sets `trial` to the state of the caller if its return address is at `at`. If the frame has a rule
 * (only its CFA was not known), the rule says where the other registers are. Else rbp may have been
 * pushed after the return address. */
static bool assume_return_address(struct walk *trial, const struct walk *w, uint64_t at,
	uint64_t word, const struct unwind_rule *rule)
{
	const uint64_t sp = at + 8;
	uint64_t pushed;

	*trial = *w;
	trial->guesses++;
	if (rule)
		return enter_caller(trial, rule, sp) == STEP_OK &&
		       trial->registers.value[UNWIND_RETURN] == word;
	trial->exact = false;
	trial->registers.known &= 1u << UNWIND_RSP | 1u << UNWIND_RETURN | 1u << UNWIND_RBP;
	trial->registers.value[UNWIND_RSP] = sp;
	trial->registers.value[UNWIND_RETURN] = word;
	if (at - 8 >= w->registers.value[UNWIND_RSP] && read_word(trial, at - 8, &pushed) &&
		pushed > at && pushed - at < READ_AT_ONCE)
		trial->registers.value[UNWIND_RBP] = pushed;
	if (trial->registers.value[UNWIND_RBP] <= at)
		trial->registers.known &= ~(1u << UNWIND_RBP);
	return true;
}

/* Judges the callers of the caller that a search found, up to the thread's first frame, the next
 * frame without a rule, or CALLERS_TRIED. What earlier calls have left on the stack looks like a
 * caller too, but its callers have been overwritten in part. */
static enum fit judge_callers(const struct walk *trial)
{
	struct walk further = *trial;
	enum step_result result = STEP_OK;
	unsigned count = 0;

	while (count < CALLERS_TRIED && (result = step(&further)) == STEP_OK) {
		if (!is_return_address(further.u, further.registers.value[UNWIND_RETURN]))
			return FITS_POORLY;
		count++;
	}
	if (result == STEP_NO_RULE && !count)
		return FITS_PERHAPS;
	return result == STEP_UNREADABLE ? FITS_POORLY : FITS;
}

/* Judges whether the call before the return address `word` has called the function of `pc`. A
 * return address that an earlier call has left on the stack names another function: FITS_POORLY. So
 * does the right one if that function jumped to the one of `pc`. FITS_PERHAPS: it names none.
 * `function`: where it begins; 0: not known, and there are no rules. */
static enum fit judge_call(struct unwinder *u, uint64_t word, uint64_t pc, uint64_t function)
{
	const uint64_t target = call_site_target(&u->scratch.memory, word);
	const struct unwind_rule *rule;
	bool same;

	if (!target)
		return FITS_PERHAPS;
	rule = find_rule(u, target);
	if (function)
		same = rule && rule->function == function;
	else
		same = !rule && target <= pc && pc - target < CODE_WITHOUT_RULES_MAX;
	return same ? FITS : FITS_POORLY;
}

/* Judges a word that is a return address. */
static enum fit judge(
	const struct walk *w, const struct candidate *c, const struct unwind_rule *rule)
{
	const uint64_t pc = w->registers.value[UNWIND_RETURN] - !w->exact;
	struct walk trial;
	enum fit call, callers;

	if (!assume_return_address(&trial, w, c->at, c->word, rule))
		return FITS_NOT;
	call = judge_call(w->u, c->word, pc, rule ? rule->function : 0);
	if (call == FITS)
		return FITS;
	callers = judge_callers(&trial);
	if (call == FITS_PERHAPS)
		return callers;
	return callers == FITS ? FITS_PERHAPS : FITS_POORLY;
}

/* Judges a word, which is not judged again in the same search. */
static void judge_once(struct walk *w, struct candidate *c, const struct unwind_rule *rule)
{
	struct unwinder *u = w->u;

	c->fit = FITS_NOT;
	if (!is_return_address(u, c->word))
		return;
	for (unsigned i = 0; i < u->judged_count; i++) {
		if (u->judged[i].at == c->at) {
			*c = u->judged[i];
			return;
		}
	}
	c->fit = judge(w, c, rule);
	if (u->judged_count < JUDGED_MAX)
		u->judged[u->judged_count++] = *c;
}

/* Searches the stack from `from` to `to` for the return address of a frame. Returns the first of
 * those that fit best. `rule`: of the frame, NULL: it has none. */
static struct candidate search_in(
	struct walk *w, uint64_t from, uint64_t to, const struct unwind_rule *rule)
{
	struct candidate best = { .fit = FITS_NOT }, c = { .at = from };

	for (; best.fit != FITS && c.at < to && read_word(w, c.at, &c.word); c.at += 8) {
		judge_once(w, &c, rule);
		if (c.fit > best.fit)
			best = c;
	}
	return best;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

/* Searches the caller of code without rules that has aligned its stack to pages, as kernels of MKL
 * do. They keep the former stack pointer near the new one, among other addresses of the stack.
 * Earlier calls have left return addresses between the two. Of those that fit best, returns the
 * caller that is nearest in the code, because a library's functions are next to each other. One
 * that fits poorly and is far away was left by an earlier call: the thread has returned since it
 * was sampled. `any`: whether a former stack pointer may be there at all. */
static struct candidate search_above_former(struct walk *w, uint64_t sp, bool *any)
{
	const uint64_t pc = w->registers.value[UNWIND_RETURN];
	struct candidate best = { .fit = FITS_NOT };
	uint64_t word;

	for (uint64_t at = sp; at < sp + KEPT_BYTES && read_word(w, at, &word); at += 8) {
		struct candidate c;

		if (word <= at || word >= sp + ROOM_BYTES_MAX || word % 8)
			continue;
		*any = true;
		c = search_in(w, word, word + SAVED_BYTES, NULL);
		if (c.fit == FITS_POORLY && distance(c.word, pc) > LIBRARY_BYTES)
			continue;
		if (c.fit > best.fit ||
			(c.fit && c.fit == best.fit &&
				distance(c.word, pc) < distance(best.word, pc)))
			best = c;
	}
	return best;
}

/* Continues in the caller of a frame whose rule is missing, or needs a register that is not known.
 * Returns false if no caller is found. */
static bool search_caller(struct walk *w)
{
	const uint64_t sp = (w->registers.value[UNWIND_RSP] + 7) & ~UINT64_C(7);
	const struct unwind_rule *kept = find_rule(
		w->u, w->registers.value[UNWIND_RETURN] - !w->exact);
	/* What is kept may be replaced meanwhile. */
	const struct unwind_rule copy = kept ? *kept : (struct unwind_rule){ .function = 0 };
	const struct unwind_rule *rule = kept ? &copy : NULL;
	struct candidate found = { .fit = FITS_NOT };
	bool is_above = false;
	struct walk caller;

	if (w->guesses == UNWIND_GUESSES_MAX)
		return false;
	w->u->judged_count = 0;
	if (!rule && sp % PAGE_BYTES == 0)
		found = search_above_former(w, sp, &is_above);
	if (!is_above)
		found = search_in(w, sp, sp + SEARCH_BYTES, rule);
	if (!found.fit || !assume_return_address(&caller, w, found.at, found.word, rule))
		return false;
	*w = caller;
	return true;
}

/* ---- */

/* Whether the address that a rule led to may be one. A word of the stack that has changed since the
 * thread was sampled usually is none. */
static bool is_plausible(const struct walk *w)
{
	const uint64_t address = w->registers.value[UNWIND_RETURN];

	return w->exact || code_map_find(&w->u->map, address - 1) || call_site_ends_at(address);
}

bool unwinder_begin(struct unwinder *u, const struct unwind_start *start)
{
	const size_t bytes = start->stack_bytes < WINDOW_BYTES_MAX ? start->stack_bytes
								   : WINDOW_BYTES_MAX;
	const uint64_t from = start->registers.value[UNWIND_RSP];

	u->begun = start->registers;
	u->sampled = (struct window){ start->stack, from, from + bytes };
	u->other = (struct window){ NULL, 0, 0 };
	if (!bytes || from % PAGE_BYTES || find_rule(u, u->begun.value[UNWIND_RETURN]))
		return false;
	extend_sampled(u, ROOM_READ_AT_ONCE);
	return true;
}

void unwinder_walk(struct unwinder *u, struct unwind_stack *stack)
{
	struct walk w = { .u = u, .registers = u->begun, .exact = true };
	enum step_result result = STEP_OK;

	stack->frames = 0;
	do {
		stack->place[stack->frames] = w.exact ? 0 : w.registers.value[UNWIND_RSP] - 8;
		stack->address[stack->frames++] = w.registers.value[UNWIND_RETURN];
		if (stack->frames == UNWIND_FRAMES_MAX)
			break;
		result = step(&w);
		if (result == STEP_NO_RULE && search_caller(&w))
			result = STEP_OK;
		if (result == STEP_OK && !is_plausible(&w))
			result = STEP_UNREADABLE;
	} while (result == STEP_OK);
	stack->cut = result != STEP_LAST;
	stack->guessed = w.guesses > 0;
}

bool unwinder_update(struct unwinder *u)
{
	const enum code_map_change change = code_map_update(&u->map);

	if (change == CODE_MAP_SHRANK) {
		memset(u->rules, 0, sizeof u->rules);
		u->expressions.count = 0;
		object_memory_forget(&u->scratch.memory);
	} else if (change == CODE_MAP_GREW) {
		for (uint32_t i = 0; i < RULES_KEPT; i++)
			if (u->rules[i].has_rule == NO)
				u->rules[i].pc = 0;
	}
	return change != CODE_MAP_SAME;
}

bool unwinder_find_function(struct unwinder *u, uint64_t pc, uint64_t *begin, uint64_t *end)
{
	const struct unwind_rule *rule = find_rule(u, pc);

	if (!rule)
		return false;
	*begin = rule->function;
	*end = rule->function_end;
	return true;
}

struct unwinder *unwinder_open(void)
{
	return fork_kept_alloc(sizeof(struct unwinder));
}

void unwinder_close(struct unwinder *u)
{
	fork_kept_free(u, sizeof *u);
}
