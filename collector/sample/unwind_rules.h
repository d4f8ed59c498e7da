/* SPDX-License-Identifier: MIT
 * Reads how a function's caller is found (its unwind rule) from the .eh_frame section that the
 * object carries in memory, by its sorted table .eh_frame_hdr. The format is that of the Linux
 * Standard Base, "Exception Frames", and of DWARF 5, section 6.4.
 *
 * Everything is read by object_memory_copy() and bounded, so damaged or unmapped tables give no
 * rule. x86-64 only: there are no rules on other processors.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_UNWIND_RULES_H
#define PPERF_COLLECTOR_SAMPLE_UNWIND_RULES_H

#include "collector/sample/code_map.h"
#include "collector/sample/object_memory.h"

#include <stdbool.h>
#include <stdint.h>

/* DWARF's numbers of registers of x86-64. RETURN is the column of the return address, in which an
 * unwinder keeps the address of the instruction. */
enum unwind_register {
	UNWIND_RBX = 3,
	UNWIND_RBP = 6,
	UNWIND_RSP = 7,
	UNWIND_R12 = 12,
	UNWIND_R15 = 15,
	UNWIND_RETURN = 16,
	UNWIND_REGISTERS = 17
};

/* Where the caller's value of a register is. CFA is the frame's canonical address: rsp before the
 * call. */
enum unwind_place {
	UNWIND_SAME,          /* still in the register */
	UNWIND_UNDEFINED,     /* lost; for RETURN: the frame has no caller */
	UNWIND_AT_CFA,        /* in memory at CFA + value */
	UNWIND_CFA_PLUS,      /* it is CFA + value */
	UNWIND_IN_REGISTER,   /* in register `value` */
	UNWIND_AT_EXPRESSION, /* in memory at the result of expression `value` */
	UNWIND_IS_EXPRESSION, /* it is the result of expression `value` */
};

struct unwind_rule {
	uint64_t function, function_end; /* the code that has this entry of .eh_frame */
	/* CFA = register `cfa_register` + `cfa_value`, or the result of expression `cfa_value`. */
	int32_t cfa_value;
	uint8_t cfa_register;
	bool cfa_is_expression;
	bool signal_frame; /* its caller was interrupted and did not call */
	uint8_t place[UNWIND_REGISTERS];
	int32_t value[UNWIND_REGISTERS];
};

#define UNWIND_EXPRESSION_BYTES_MAX 63u
#define UNWIND_EXPRESSIONS_MAX 512u

/* The DWARF expressions of the rules that were read. Equal ones are kept once, so a process has a
 * few dozen. */
struct unwind_expressions {
	uint32_t count;
	struct unwind_expression {
		uint8_t bytes;
		uint8_t code[UNWIND_EXPRESSION_BYTES_MAX];
	} all[UNWIND_EXPRESSIONS_MAX];
};

#define UNWIND_ENTRY_BYTES_MAX 16384u /* larger entries of .eh_frame are not read to their end */

/* Memory that reading rules needs. Filled with zeros at the beginning. */
struct unwind_scratch {
	struct object_memory memory; /* of the tables; to be forgotten when an object is unloaded */
	uint8_t function[UNWIND_ENTRY_BYTES_MAX], common[256];
};

/* Finds the rule for the instruction at `pc`, which is in `object`. Returns false if there is none,
 * it is damaged, or it uses what is not supported. */
bool unwind_rule_read(struct code_object *object, uint64_t pc, struct unwind_rule *rule,
	struct unwind_expressions *expressions, struct unwind_scratch *scratch);

#endif
