/* SPDX-License-Identifier: MIT
 * The operators are those of DWARF 5, section 2.5, without branches and calls: every expression
 * ends after as many steps as it has bytes.
 */
#include "collector/sample/unwind_expression.h"

#include "collector/sample/byte_cursor.h"

#define DEPTH_MAX 32u

struct expression_stack {
	struct byte_cursor code;
	const struct unwind_registers *registers;
	unwind_read_word *read;
	void *memory;
	unsigned depth;
	uint64_t values[DEPTH_MAX];
};

static void push(struct expression_stack *s, uint64_t value)
{
	if (s->depth == DEPTH_MAX)
		s->code.bad = true;
	else
		s->values[s->depth++] = value;
}

static uint64_t pop(struct expression_stack *s)
{
	if (s->depth)
		return s->values[--s->depth];
	s->code.bad = true;
	return 0;
}

static void push_register(struct expression_stack *s, uint64_t reg, int64_t offset)
{
	if (reg >= UNWIND_REGISTERS || !(s->registers->known >> reg & 1))
		s->code.bad = true;
	else
		push(s, s->registers->value[reg] + (uint64_t)offset);
}

/* Returns whether `op` pushes a constant, and pushes it. */
static bool push_constant(struct expression_stack *s, uint8_t op)
{
	static const uint8_t bytes[] = { 1, 1, 2, 2, 4, 4, 8, 8 };
	const bool is_signed = op & 1;
	uint64_t value;
	unsigned unused_bits;

	if (op >= 0x30 && op <= 0x4f) { /* DW_OP_lit0 */
		push(s, op - 0x30u);
	} else if (op >= 0x08 && op <= 0x0f) { /* DW_OP_const1u, const1s ... const8s */
		value = cursor_fixed(&s->code, bytes[op - 8]);
		unused_bits = 64 - 8u * bytes[op - 8];
		push(s, is_signed ? (uint64_t)((int64_t)(value << unused_bits) >> unused_bits)
				  : value);
	} else if (op == 0x10) { /* DW_OP_constu */
		push(s, cursor_uleb(&s->code));
	} else if (op == 0x11) { /* DW_OP_consts */
		push(s, (uint64_t)cursor_sleb(&s->code));
	} else {
		return false;
	}
	return true;
}

static uint64_t shift_right_signed(uint64_t value, uint64_t by)
{
	return (uint64_t)((int64_t)value >> (by > 63 ? 63 : by));
}

/* The operators with two operands. */
#define BINARY_OPERATORS(X)                                 \
	X(0x1a, a &b)                     /* DW_OP_and */   \
	X(0x1c, a - b)                    /* DW_OP_minus */ \
	X(0x1e, a *b)                     /* DW_OP_mul */   \
	X(0x21, a | b)                    /* DW_OP_or */    \
	X(0x22, a + b)                    /* DW_OP_plus */  \
	X(0x24, b > 63 ? 0 : a << b)      /* DW_OP_shl */   \
	X(0x25, b > 63 ? 0 : a >> b)      /* DW_OP_shr */   \
	X(0x26, shift_right_signed(a, b)) /* DW_OP_shra */  \
	X(0x27, a ^ b)                    /* DW_OP_xor */   \
	X(0x29, a == b)                   /* DW_OP_eq */    \
	X(0x2a, (int64_t)a >= (int64_t)b) /* DW_OP_ge */    \
	X(0x2b, (int64_t)a > (int64_t)b)  /* DW_OP_gt */    \
	X(0x2c, (int64_t)a <= (int64_t)b) /* DW_OP_le */    \
	X(0x2d, (int64_t)a < (int64_t)b)  /* DW_OP_lt */    \
	X(0x2e, a != b)                   /* DW_OP_ne */

/* Returns whether `op` has two operands and sets what it makes of them. */
static bool combine(uint8_t op, uint64_t a, uint64_t b, uint64_t *result)
{
	switch (op) {
#define X(number, expression)         \
	case number:                  \
		*result = expression; \
		return true;
		BINARY_OPERATORS(X)
#undef X
	default:
		return false;
	}
}

static void execute_unary(struct expression_stack *s, uint8_t op)
{
	uint64_t value = pop(s);

	switch (op) {
	case 0x06: /* DW_OP_deref */
		s->code.bad |= !s->read(s->memory, value, &value);
		break;
	case 0x12: /* DW_OP_dup */
		push(s, value);
		break;
	case 0x13: /* DW_OP_drop */
		return;
	case 0x1f: /* DW_OP_neg */
		value = 0 - value;
		break;
	case 0x20: /* DW_OP_not */
		value = ~value;
		break;
	case 0x23: /* DW_OP_plus_uconst */
		value += cursor_uleb(&s->code);
		break;
	default:
		s->code.bad = true;
	}
	push(s, value);
}

static void execute_operator(struct expression_stack *s, uint8_t op)
{
	uint64_t a, b, result;

	if (push_constant(s, op))
		return;
	if (op >= 0x70 && op <= 0x8f) { /* DW_OP_breg0 */
		push_register(s, op - 0x70u, cursor_sleb(&s->code));
	} else if (op == 0x92) { /* DW_OP_bregx */
		a = cursor_uleb(&s->code);
		push_register(s, a, cursor_sleb(&s->code));
	} else if (combine(op, 0, 0, &result)) {
		b = pop(s);
		a = pop(s);
		combine(op, a, b, &result);
		push(s, result);
	} else if (op != 0x96) { /* DW_OP_nop */
		execute_unary(s, op);
	}
}

bool unwind_expression_compute(const struct unwind_expression *expression,
	const struct unwind_registers *registers, const uint64_t *first, unwind_read_word *read,
	void *memory, uint64_t *result)
{
	struct expression_stack s = { .registers = registers, .read = read, .memory = memory };

	s.code = cursor_of(expression->code, expression->bytes, 0);
	if (first)
		push(&s, *first);
	while (s.code.at < s.code.end && !s.code.bad)
		execute_operator(&s, (uint8_t)cursor_fixed(&s.code, 1));
	if (s.code.bad || !s.depth)
		return false;
	*result = s.values[s.depth - 1];
	return true;
}
