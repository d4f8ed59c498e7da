/* SPDX-License-Identifier: MIT
 * The simulated NVRTC: it compiles nothing. Every program is good, its code is an ELF file for the
 * device with nothing in it, and a module loaded from that has every function it is asked for. A
 * kernel is called by its name in the source.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libraries/library.h"

/* NVRTC's numbers. */
enum nvrtc_result {
	NVRTC_SUCCESS = 0,
	NVRTC_ERROR_OUT_OF_MEMORY = 1,
	NVRTC_ERROR_INVALID_INPUT = 3,
	NVRTC_ERROR_INVALID_PROGRAM = 4,
	NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 10,
};

#define EM_CUDA_DEVICE 190
#define PTX_TEXT ".version 8.0\n.target sm_90\n.address_size 64\n"

static const Elf64_Ehdr cubin = {
	.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
	.e_type = ET_EXEC,
	.e_machine = EM_CUDA_DEVICE,
	.e_version = EV_CURRENT,
	.e_shoff = sizeof(Elf64_Ehdr),
	.e_ehsize = sizeof(Elf64_Ehdr),
	.e_shentsize = sizeof(Elf64_Shdr),
};

/* A kernel that the program was asked for. */
struct kernel_name {
	struct kernel_name *next;
	char *expression; /* "add<float>" */
	char lowered[];   /* as it is mangled: "_Z3addv" */
};

struct program {
	struct kernel_name *names;
};

#define NVRTC_API(name, proto, args) LIBRARY_API(int, name, proto, args, name##_inside args)

NVRTC_API(nvrtcVersion, (int *major, int *minor), (major, minor))
{
	*major = SIM_CUDA_VERSION / 1000;
	*minor = SIM_CUDA_VERSION % 1000 / 10;
	return NVRTC_SUCCESS;
}

SIM_EXPORT const char *nvrtcGetErrorString(int result);
SIM_EXPORT const char *nvrtcGetErrorString(int result)
{
	switch (result) {
	case NVRTC_SUCCESS:
		return "NVRTC_SUCCESS";
	case NVRTC_ERROR_OUT_OF_MEMORY:
		return "NVRTC_ERROR_OUT_OF_MEMORY";
	case NVRTC_ERROR_INVALID_INPUT:
		return "NVRTC_ERROR_INVALID_INPUT";
	case NVRTC_ERROR_INVALID_PROGRAM:
		return "NVRTC_ERROR_INVALID_PROGRAM";
	case NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID:
		return "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID";
	default:
		return "NVRTC_ERROR unknown";
	}
}

NVRTC_API(nvrtcCreateProgram,
	(struct program * *program, const char *source, const char *name, int header_count,
		const char *const *headers, const char *const *include_names),
	(program, source, name, header_count, headers, include_names))
{
	(void)name;
	(void)header_count;
	(void)headers;
	(void)include_names;
	if (!program || !source)
		return NVRTC_ERROR_INVALID_INPUT;
	*program = library_new(sizeof(**program));
	return *program ? NVRTC_SUCCESS : NVRTC_ERROR_OUT_OF_MEMORY;
}

NVRTC_API(nvrtcDestroyProgram, (struct program * *program), (program))
{
	if (!program || !*program)
		return NVRTC_ERROR_INVALID_PROGRAM;
	for (struct kernel_name *next, *n = (*program)->names; n; n = next) {
		next = n->next;
		free(n->expression);
		free(n);
	}
	free(*program);
	*program = NULL;
	return NVRTC_SUCCESS;
}

NVRTC_API(nvrtcCompileProgram,
	(struct program * program, int option_count, const char *const *options),
	(program, option_count, options))
{
	(void)option_count;
	(void)options;
	return program ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}

/* The name in an expression: without namespaces, arguments and what else is around it. */
static const char *find_name(const char *expression, int *length)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	size_t stop = strcspn(expression, "<("), start = stop;

	while (start > 0 && strchr(letters, expression[start - 1]))
		start--;
	*length = (int)(stop - start);
	return expression + start;
}

NVRTC_API(nvrtcAddNameExpression, (struct program * program, const char *expression),
	(program, expression))
{
	int length;
	const char *name;
	struct kernel_name *added;

	if (!program || !expression)
		return NVRTC_ERROR_INVALID_INPUT;
	name = find_name(expression, &length);
	added = library_new(sizeof(*added) + (size_t)length + 16);
	if (!added)
		return NVRTC_ERROR_OUT_OF_MEMORY;
	sprintf(added->lowered, "_Z%d%.*sv", length, length, name);
	added->expression = strdup(expression);
	added->next = program->names;
	program->names = added;
	return NVRTC_SUCCESS;
}

NVRTC_API(nvrtcGetLoweredName,
	(struct program * program, const char *expression, const char **lowered),
	(program, expression, lowered))
{
	for (const struct kernel_name *n = program ? program->names : NULL; n; n = n->next) {
		if (!n->expression || strcmp(n->expression, expression) != 0)
			continue;
		*lowered = n->lowered;
		return NVRTC_SUCCESS;
	}
	return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}

NVRTC_API(nvrtcGetCUBINSize, (struct program * program, size_t *bytes), (program, bytes))
{
	*bytes = sizeof(cubin);
	return program ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}

NVRTC_API(nvrtcGetCUBIN, (struct program * program, char *code), (program, code))
{
	memcpy(code, &cubin, sizeof(cubin));
	return program ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}

NVRTC_API(nvrtcGetPTXSize, (struct program * program, size_t *bytes), (program, bytes))
{
	*bytes = sizeof(PTX_TEXT);
	return program ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}

NVRTC_API(nvrtcGetPTX, (struct program * program, char *code), (program, code))
{
	memcpy(code, PTX_TEXT, sizeof(PTX_TEXT));
	return program ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}

NVRTC_API(nvrtcGetProgramLogSize, (struct program * program, size_t *bytes), (program, bytes))
{
	*bytes = 1;
	return program ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}

NVRTC_API(nvrtcGetProgramLog, (struct program * program, char *text), (program, text))
{
	text[0] = '\0';
	return program ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}
