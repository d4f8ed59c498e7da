/* SPDX-License-Identifier: MIT
 * .eh_frame_hdr is a table of (start of a function, entry in .eh_frame), sorted by address. The
 * entry (FDE) has the function's extent and instructions, and names an entry (CIE) that several
 * functions share, whose instructions come first. The instructions build a table of rules by
 * address; they are executed up to the address that is needed.
 */
#include "collector/sample/unwind_rules.h"

#include "collector/sample/byte_cursor.h"

#include <string.h>

/* How an address is encoded (DW_EH_PE_...): the low half says in what, the high half what is to be
 * added. */
enum {
	POINTER_IS_ADDRESS = 0x00,
	POINTER_IS_ULEB = 0x01,
	POINTER_IS_U16 = 0x02,
	POINTER_IS_U32 = 0x03,
	POINTER_IS_U64 = 0x04,
	POINTER_IS_SLEB = 0x09,
	POINTER_IS_S16 = 0x0a,
	POINTER_IS_S32 = 0x0b,
	POINTER_IS_S64 = 0x0c,
	POINTER_FORM = 0x0f,
	POINTER_TO_ITSELF = 0x10, /* relative to its own address */
	POINTER_TO_HEADER = 0x30, /* relative to .eh_frame_hdr */
	POINTER_BASE = 0x70,
	POINTER_ABSENT = 0xff
};

#define HEADER_VERSION 1u
#define TABLE_ENCODING (POINTER_TO_HEADER | POINTER_IS_S32) /* the only one that linkers write */
#define STATES_MAX 16u                                      /* DW_CFA_remember_state */

struct table_entry {
	int32_t function, entry; /* relative to .eh_frame_hdr */
};

/* What a CIE says. */
struct common_entry {
	uint64_t code_factor;
	int64_t data_factor;
	uint8_t pointers; /* encoding of addresses in the FDEs */
	bool has_extra, signal_frame;
	struct byte_cursor instructions;
};

/* Executes instructions of a CIE and then an FDE. */
struct rule_machine {
	struct unwind_rule *rule;
	struct unwind_rule initial; /* as the CIE left it */
	struct unwind_rule states[STATES_MAX];
	unsigned depth;
	const struct common_entry *common;
	struct unwind_expressions *expressions;
	uint64_t at, pc; /* where the rule built so far begins to hold; the address needed */
};

static int64_t read_signed(struct byte_cursor *c, uint8_t form)
{
	switch (form) {
	case POINTER_IS_S16:
		return (int16_t)cursor_fixed(c, 2);
	case POINTER_IS_S32:
		return (int32_t)cursor_fixed(c, 4);
	case POINTER_IS_SLEB:
		return cursor_sleb(c);
	default:
		c->bad = true;
		return 0;
	}
}

static uint64_t read_form(struct byte_cursor *c, uint8_t form)
{
	switch (form) {
	case POINTER_IS_ADDRESS:
	case POINTER_IS_U64:
	case POINTER_IS_S64:
		return cursor_fixed(c, 8);
	case POINTER_IS_U16:
		return cursor_fixed(c, 2);
	case POINTER_IS_U32:
		return cursor_fixed(c, 4);
	case POINTER_IS_ULEB:
		return cursor_uleb(c);
	default:
		return (uint64_t)read_signed(c, form);
	}
}

/* Reads an address that is absolute or relative to itself. */
static uint64_t read_pointer(struct byte_cursor *c, uint8_t encoding)
{
	const uint64_t own = cursor_address(c);
	const uint8_t base = encoding & POINTER_BASE;
	uint64_t value;

	if (encoding == POINTER_ABSENT)
		return 0;
	value = read_form(c, encoding & POINTER_FORM);
	if (base == POINTER_TO_ITSELF)
		value += own;
	else if (base)
		c->bad = true;
	return value;
}

/* ---- the sorted table ---- */

/* Finds the sorted table of `o`. Without one, `o` has no entries. */
static void open_table(struct code_object *o, struct object_memory *memory)
{
	uint8_t head[4 + 8 + 8];
	struct byte_cursor c;

	o->table_known = true;
	o->table_entries = 0;
	if (!o->header || o->header < o->start || o->header >= o->end)
		return;
	c = cursor_of(head, object_memory_copy(memory, head, o->header, sizeof head), o->header);
	if (cursor_fixed(&c, 1) != HEADER_VERSION)
		return;
	cursor_take(&c, 3);
	if (c.bad || head[3] != TABLE_ENCODING)
		return;
	read_form(&c, head[1] & POINTER_FORM); /* where .eh_frame begins; not needed */
	o->table_entries = (uint32_t)read_form(&c, head[2] & POINTER_FORM);
	o->table = cursor_address(&c);
	if (c.bad || head[2] == POINTER_ABSENT ||
		o->table_entries > (o->end - o->header) / sizeof(struct table_entry))
		o->table_entries = 0;
}

static bool read_table_entry(const struct code_object *o, struct object_memory *memory,
	uint32_t index, struct table_entry *entry)
{
	return object_memory_copy(memory, entry, o->table + index * sizeof *entry, sizeof *entry) ==
	       sizeof *entry;
}

/* Finds the last entry of the table whose function begins at `pc` or before. Returns the address of
 * its FDE; 0: none. */
static uint64_t find_function_entry(
	const struct code_object *o, struct object_memory *memory, uint64_t pc)
{
	const int64_t wanted = (int64_t)(pc - o->header);
	uint32_t low = 0, high = o->table_entries;
	struct table_entry entry, found = { 0, 0 };

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (!read_table_entry(o, memory, middle, &entry))
			return 0;
		if (entry.function <= wanted) {
			found = entry;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low ? o->header + (uint64_t)(int64_t)found.entry : 0;
}

/* ---- entries of .eh_frame ---- */

/* Copies the entry at `address` and sets a cursor behind its length. An entry that does not fit is
 * cut, and `whole` is false. Returns false if it is none. */
static bool read_entry(const struct code_object *o, struct object_memory *memory, uint64_t address,
	uint8_t *to, size_t room, struct byte_cursor *c, bool *whole)
{
	const size_t first = room < 256 ? room : 256;
	uint64_t length;
	size_t got;

	if (address < o->start || address >= o->end)
		return false;
	got = object_memory_copy(memory, to, address, first);
	*c = cursor_of(to, got, address);
	length = cursor_fixed(c, 4);
	if (c->bad || length < 4 || length >= 0xfffffff0u) /* the last: 64 bits follow */
		return false;
	if (length + 4 > got && got == first && room > first)
		got += object_memory_copy(memory, to + got, address + got,
			(length + 4 < room ? length + 4 : room) - got);
	*whole = length + 4 <= got;
	c->end = to + (*whole ? length + 4 : got);
	return true;
}

/* Reads what the letters of a CIE's augmentation announce. */
static void read_augmentation(struct byte_cursor *c, const char *letters, struct common_entry *e)
{
	const uint64_t bytes = cursor_uleb(c);
	struct byte_cursor data = cursor_take(c, bytes);

	for (; *letters; letters++) {
		if (*letters == 'R')
			e->pointers = (uint8_t)cursor_fixed(&data, 1);
		else if (*letters == 'L')
			cursor_fixed(&data, 1);
		else if (*letters == 'P')
			read_form(&data, (uint8_t)cursor_fixed(&data, 1) & POINTER_FORM);
		else if (*letters == 'S')
			e->signal_frame = true;
		else
			c->bad = true;
	}
	c->bad |= data.bad;
}

static bool read_common(const struct code_object *o, uint64_t address,
	struct unwind_scratch *scratch, struct common_entry *e)
{
	struct byte_cursor c;
	const char *letters;
	uint64_t version;
	bool whole;

	*e = (struct common_entry){ .code_factor = 0 };
	if (!read_entry(o, &scratch->memory, address, scratch->common, sizeof scratch->common, &c,
		    &whole) ||
		!whole || cursor_fixed(&c, 4) != 0)
		return false;
	version = cursor_fixed(&c, 1);
	letters = cursor_string(&c);
	if (c.bad || (version != 1 && version != 3) || (*letters && *letters != 'z'))
		return false;
	e->code_factor = cursor_uleb(&c);
	e->data_factor = cursor_sleb(&c);
	if ((version == 1 ? cursor_fixed(&c, 1) : cursor_uleb(&c)) != UNWIND_RETURN)
		return false;
	e->has_extra = *letters == 'z';
	if (e->has_extra)
		read_augmentation(&c, letters + 1, e);
	e->instructions = c;
	return !c.bad;
}

/* ---- instructions ---- */

/* Returns the index of an expression, which is added if it is new; -1: it is too long, or there are
 * too many. */
static int32_t keep_expression(struct unwind_expressions *all, struct byte_cursor code)
{
	const size_t bytes = (size_t)(code.end - code.at);
	uint32_t i;

	if (bytes > UNWIND_EXPRESSION_BYTES_MAX)
		return -1;
	for (i = 0; i < all->count; i++)
		if (all->all[i].bytes == bytes && !memcmp(all->all[i].code, code.at, bytes))
			return (int32_t)i;
	if (all->count == UNWIND_EXPRESSIONS_MAX)
		return -1;
	all->all[all->count].bytes = (uint8_t)bytes;
	memcpy(all->all[all->count].code, code.at, bytes);
	return (int32_t)all->count++;
}

static int32_t read_expression(struct rule_machine *m, struct byte_cursor *c)
{
	const struct byte_cursor code = cursor_take(c, cursor_uleb(c));
	const int32_t index = c->bad ? -1 : keep_expression(m->expressions, code);

	c->bad |= index < 0;
	return index;
}

static void set_place(struct rule_machine *m, uint64_t reg, enum unwind_place place, uint64_t value)
{
	if (reg >= UNWIND_REGISTERS)
		return; /* vector registers: no caller's frame depends on them */
	m->rule->place[reg] = (uint8_t)place;
	m->rule->value[reg] = (int32_t)value;
}

static void set_cfa(struct rule_machine *m, struct byte_cursor *c, uint64_t reg, uint64_t value)
{
	c->bad |= reg >= UNWIND_REGISTERS;
	m->rule->cfa_is_expression = false;
	m->rule->cfa_register = (uint8_t)reg;
	m->rule->cfa_value = (int32_t)value;
}

static void restore_register(struct rule_machine *m, uint64_t reg)
{
	if (reg < UNWIND_REGISTERS)
		set_place(m, reg, m->initial.place[reg], (uint64_t)m->initial.value[reg]);
}

static void remember_state(struct rule_machine *m, struct byte_cursor *c)
{
	if (m->depth == STATES_MAX)
		c->bad = true;
	else
		m->states[m->depth++] = *m->rule;
}

static void restore_state(struct rule_machine *m, struct byte_cursor *c)
{
	if (!m->depth)
		c->bad = true;
	else
		*m->rule = m->states[--m->depth];
}

static uint64_t scaled(const struct rule_machine *m, int64_t offset)
{
	return (uint64_t)offset * (uint64_t)m->common->data_factor;
}

static uint64_t unsigned_offset(const struct rule_machine *m, struct byte_cursor *c)
{
	return scaled(m, (int64_t)cursor_uleb(c));
}

static uint64_t signed_offset(const struct rule_machine *m, struct byte_cursor *c)
{
	return scaled(m, cursor_sleb(c));
}

static void advance(struct rule_machine *m, uint64_t by)
{
	m->at += by * m->common->code_factor;
}

/* Instructions that define the CFA. Returns whether `op` is one. */
static bool execute_cfa(struct rule_machine *m, struct byte_cursor *c, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case 0x0c: /* DW_CFA_def_cfa */
		reg = cursor_uleb(c);
		set_cfa(m, c, reg, cursor_uleb(c));
		return true;
	case 0x0d: /* DW_CFA_def_cfa_register */
		set_cfa(m, c, cursor_uleb(c), (uint64_t)m->rule->cfa_value);
		return true;
	case 0x0e: /* DW_CFA_def_cfa_offset */
		set_cfa(m, c, m->rule->cfa_register, cursor_uleb(c));
		return true;
	case 0x0f: /* DW_CFA_def_cfa_expression */
		m->rule->cfa_value = read_expression(m, c);
		m->rule->cfa_is_expression = true;
		return true;
	case 0x12: /* DW_CFA_def_cfa_sf */
		reg = cursor_uleb(c);
		set_cfa(m, c, reg, signed_offset(m, c));
		return true;
	case 0x13: /* DW_CFA_def_cfa_offset_sf */
		set_cfa(m, c, m->rule->cfa_register, signed_offset(m, c));
		return true;
	default:
		return false;
	}
}

/* Instructions that say where one register is. Returns whether `op` is one. */
static bool execute_register(struct rule_machine *m, struct byte_cursor *c, uint8_t op)
{
	static const uint8_t places[32] = { [0x05] = UNWIND_AT_CFA,
		[0x07] = UNWIND_UNDEFINED,
		[0x08] = UNWIND_SAME,
		[0x09] = UNWIND_IN_REGISTER,
		[0x10] = UNWIND_AT_EXPRESSION,
		[0x11] = UNWIND_AT_CFA,
		[0x14] = UNWIND_CFA_PLUS,
		[0x15] = UNWIND_CFA_PLUS,
		[0x16] = UNWIND_IS_EXPRESSION };
	uint64_t reg, value = 0;

	if (op >= 32 || (!places[op] && op != 0x08))
		return false;
	reg = cursor_uleb(c);
	switch (op) {
	case 0x05: /* DW_CFA_offset_extended */
	case 0x14: /* DW_CFA_val_offset */
		value = unsigned_offset(m, c);
		break;
	case 0x11: /* DW_CFA_offset_extended_sf */
	case 0x15: /* DW_CFA_val_offset_sf */
		value = signed_offset(m, c);
		break;
	case 0x09: /* DW_CFA_register */
		value = cursor_uleb(c);
		c->bad |= value >= UNWIND_REGISTERS;
		break;
	case 0x10: /* DW_CFA_expression */
	case 0x16: /* DW_CFA_val_expression */
		value = (uint64_t)read_expression(m, c);
		break;
	default: /* DW_CFA_undefined, DW_CFA_same_value */
		break;
	}
	set_place(m, reg, places[op], value);
	return true;
}

static void execute_other(struct rule_machine *m, struct byte_cursor *c, uint8_t op)
{
	switch (op) {
	case 0x00: /* DW_CFA_nop */
		break;
	case 0x01: /* DW_CFA_set_loc */
		m->at = read_pointer(c, m->common->pointers);
		break;
	case 0x02: /* DW_CFA_advance_loc1 */
	case 0x03: /* DW_CFA_advance_loc2 */
	case 0x04: /* DW_CFA_advance_loc4 */
		advance(m, cursor_fixed(c, (size_t)1 << (op - 2)));
		break;
	case 0x06: /* DW_CFA_restore_extended */
		restore_register(m, cursor_uleb(c));
		break;
	case 0x0a:
		remember_state(m, c);
		break;
	case 0x0b:
		restore_state(m, c);
		break;
	case 0x2e: /* DW_CFA_GNU_args_size */
		cursor_uleb(c);
		break;
	default:
		c->bad = true;
	}
}

static void execute_one(struct rule_machine *m, struct byte_cursor *c)
{
	const uint8_t op = (uint8_t)cursor_fixed(c, 1), low = op & 0x3f;

	switch (op >> 6) {
	case 1: /* DW_CFA_advance_loc */
		advance(m, low);
		break;
	case 2: /* DW_CFA_offset */
		set_place(m, low, UNWIND_AT_CFA, unsigned_offset(m, c));
		break;
	case 3: /* DW_CFA_restore */
		restore_register(m, low);
		break;
	default:
		if (!execute_cfa(m, c, op) && !execute_register(m, c, op))
			execute_other(m, c, op);
	}
}

/* Executes instructions until one moves past the needed address. `whole`: the instructions are all
 * there. Returns whether the rule is complete. */
static bool execute(struct rule_machine *m, struct byte_cursor c, bool whole)
{
	while (c.at < c.end && !c.bad) {
		execute_one(m, &c);
		if (m->at > m->pc && !c.bad)
			return true;
	}
	return !c.bad && whole;
}

/* Executes the instructions of the CIE, then those of the FDE. */
static bool build_rule(struct rule_machine *m, struct byte_cursor instructions, bool whole)
{
	const uint64_t start = m->at;

	memset(m->rule, 0, sizeof *m->rule);
	m->at = 0;
	if (!execute(m, m->common->instructions, true))
		return false;
	m->initial = *m->rule;
	m->at = start;
	m->rule->function = start;
	m->rule->signal_frame = m->common->signal_frame;
	return execute(m, instructions, whole);
}

static bool read_function(struct rule_machine *m, struct byte_cursor c, bool whole)
{
	uint64_t start, bytes;

	start = read_pointer(&c, m->common->pointers);
	bytes = read_form(&c, m->common->pointers & POINTER_FORM);
	if (m->common->has_extra)
		cursor_take(&c, cursor_uleb(&c));
	if (c.bad || m->pc < start || m->pc - start >= bytes)
		return false;
	m->at = start;
	if (!build_rule(m, c, whole))
		return false;
	m->rule->function_end = start + bytes;
	return true;
}

bool unwind_rule_read(struct code_object *o, uint64_t pc, struct unwind_rule *rule,
	struct unwind_expressions *expressions, struct unwind_scratch *scratch)
{
	struct common_entry common;
	struct rule_machine machine = {
		.rule = rule, .common = &common, .expressions = expressions, .pc = pc
	};
	struct byte_cursor c;
	uint64_t entry, own, back;
	bool whole;

#ifndef __x86_64__
	return false;
#endif
	if (!o->table_known)
		open_table(o, &scratch->memory);
	entry = find_function_entry(o, &scratch->memory, pc);
	if (!entry || !read_entry(o, &scratch->memory, entry, scratch->function,
			      sizeof scratch->function, &c, &whole))
		return false;
	own = cursor_address(&c);
	back = cursor_fixed(&c, 4);
	return !c.bad && back && read_common(o, own - back, scratch, &common) &&
	       read_function(&machine, c, whole);
}
