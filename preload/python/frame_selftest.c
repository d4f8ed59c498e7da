/* SPDX-License-Identifier: MIT */
#include "preload/python/frame_selftest.h"
#include "preload/python/code_location.h"
#include "preload/python/frame_walk.h"

#include "collector/process/fork_wiped_memory.h"
#include "preload/python/python.h"
#include "preload/python/user_code.h"
#include "preload/python/str.h"

#include <stdio.h>
#include <string.h>

#define LABEL "<pperf: the frames are tried>"
#define TEXT_BYTES (256u << 10) /* bytes of a stack as text */
#define FRAMES_MAX 64u
#define SEARCH_MAX 512u
#define PART_MAX 200u /* bytes of a text that are compared */
#define PROBES 20     /* calls of `probe` in the code below */

/* The Python code of the test. A stack is passed as text, one line per frame, innermost first: line
 * number, file and function, separated by tabs. The bytes are hexadecimal digits. `stack` is called
 * on the same line as `probe`, so that Python reports the line of that call. In one case it is
 * called one line further, where an instruction or two make the difference. */
#define TEN "\n\n\n\n\n\n\n\n\n\n"
#define BLANK_LINES TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN /* lines without code */
static const char selftest_source[] =
	"import sys\n"
	"def text(of):\n"
	"    return of.encode('utf-8', 'surrogateescape')[:200]\n"
	"def stack(frame, further=0):\n"
	"    lines = []\n"
	"    while frame is not None and len(lines) < 64:\n"
	"        code = frame.f_code\n"
	"        name = getattr(code, 'co_qualname', code.co_name)\n"
	"        lines.append(b'%d\\t%s\\t%s\\n' % ((frame.f_lineno or 0) + further, "
	"text(code.co_filename), text(name)))\n"
	"        frame, further = frame.f_back, 0\n"
	"    return b''.join(lines).hex()\n"
	"here = sys._getframe\n"
	"def plain():\n"
	"    probe(stack(here()))\n"
	"\n"
	"\n"
	"    x = [1,\n"
	"         2]; probe(stack(here()))\n"
	"    if x:\n"
	"        for i in range(2): probe(stack(here()))\n"
	"    def inner(depth):\n"
	"        if depth:\n"
	"            return inner(depth - 1)\n"
	"        probe(stack(here()))\n"
	"    probe(\n"
	"        stack(here(), -1))\n"
	"    inner(0)\n"
	"    inner(40)\n"
	"    [probe(stack(here())) for i in (1,)]\n"
	"    list(probe(stack(here())) for i in (1,))\n"
	"    sorted((2, 1),\n"
	"           key=lambda value: probe(stack(here())) or value)\n"
	"class Body:\n"
	"    probe(stack(here()))\n"
	"    def __init__(self):\n"
	"        try:\n"
	"            raise ValueError\n"
	"        except ValueError:\n"
	"            probe(stack(here()))\n"
	"        finally:\n"
	"            probe(stack(here()))\n"
	"    @property\n"
	"    def value(self):\n"
	"        yield\n"
	"        probe(stack(here()))\n"
	"class Row:\n"
	"    @property\n"
	"    def here(self):\n"
	"        probe(stack(here()))\n"
	"    def __iter__(self):\n"
	"        (self\n"
	"         .here)\n"
	"        return self\n"
	"    def __next__(self):\n"
	"        probe(stack(here()))\n"
	"        raise StopIteration\n"
	"def rows():\n"
	"    for _ in Row():\n"
	"        plain\n"
	"async def run():\n"
	"    probe(stack(here()))\n" BLANK_LINES "    probe(stack(here()))\n"
	"def h\xc3\xb6he():\n"
	"    probe(stack(here()))\n"
	"plain()\n"
	"rows()\n"
	"for _ in Body().value: pass\n"
	"try:\n"
	"    run().send(None)\n"
	"except StopIteration:\n"
	"    pass\n"
	"h\xc3\xb6he()\n"
	"getattr(sys, '_stdlib_dir', None) and not_own(sys._stdlib_dir)\n"
	"for name in ('os', 'torch'):\n"
	"    file = getattr(sys.modules.get(name), '__file__', None)\n"
	"    file and not_own(file.rpartition('/')[0])\n";

/* The state of the test. One thread at a time uses it, because the GIL is held. */
static const struct python_layout *tested_layout;
static char *stack_text; /* TEXT_BYTES */
static unsigned matches, mismatches;

static size_t append_text(char *to, size_t at, uintptr_t object, char end)
{
	char room[PYTHON_STR_ROOM];
	size_t bytes = 0;
	const char *from = python_str(tested_layout, object, room, &bytes);

	if (!from || at + PART_MAX + 2 > TEXT_BYTES)
		return at;
	bytes = bytes < PART_MAX ? bytes : PART_MAX;
	memcpy(to + at, from, bytes);
	to[at + bytes] = end;
	return at + bytes + 1;
}

static size_t append_frame(char *to, size_t at, const struct python_code *code, int64_t offset)
{
	const unsigned line = python_code_line(tested_layout, code, offset);

	at += (size_t)sprintf(to + at, "%u\t", line);
	at = append_text(to, at, code->file, '\t');
	return append_text(to, at, code->name, '\n');
}

/* Writes the thread's stack, read from memory, as `stack` does. Returns its length in bytes; 0 on
 * failure. */
static size_t read_stack(char *to)
{
	uintptr_t at = python_frame_first(
		tested_layout, (uintptr_t)python.PyGILState_GetThisThreadState());
	struct python_frame frame;
	struct python_code code;
	size_t used = 0;
	unsigned frames = 0;

	for (unsigned i = 0;
		at && i < SEARCH_MAX && frames < FRAMES_MAX && used + 4096 < TEXT_BYTES;
		i++, at = frame.previous) {
		if (!python_frame_read(tested_layout, at, &frame))
			return 0;
		if (!frame.code)
			continue;
		if (!python_code_read(tested_layout, frame.code, &code))
			return 0;
		used = append_frame(to, used, &code, frame.offset);
		frames++;
	}
	return used;
}

static bool is_hex_of(const char *digits, size_t count, const char *bytes, size_t size)
{
	static const char hex[] = "0123456789abcdef";

	if (count != 2 * size)
		return false;
	for (size_t i = 0; i < size; i++)
		if (digits[2 * i] != hex[(uint8_t)bytes[i] >> 4] ||
			digits[2 * i + 1] != hex[(uint8_t)bytes[i] & 15])
			return false;
	return true;
}

static struct python_object *compare_stack(
	struct python_object *self, struct python_object *expected)
{
	ptrdiff_t count = 0;
	const char *digits = python.PyUnicode_AsUTF8AndSize(expected, &count);

	(void)self;
	if (digits && is_hex_of(digits, (size_t)count, stack_text, read_stack(stack_text)))
		matches++;
	else
		mismatches++;
	python.PyErr_Clear();
	return python_none();
}

static struct python_object *add_library_folder(
	struct python_object *self, struct python_object *folder)
{
	ptrdiff_t bytes = 0;
	const char *utf8 = python.PyUnicode_AsUTF8AndSize(folder, &bytes);

	(void)self;
	if (utf8)
		python_add_library_folder(utf8, (size_t)bytes);
	python.PyErr_Clear();
	return python_none();
}

enum python_trouble python_frame_selftest(const struct python_layout *layout)
{
	static const struct python_function functions[] = {
		{ "probe", compare_stack, PYTHON_ONE_ARGUMENT, NULL },
		{ "not_own", add_library_folder, PYTHON_ONE_ARGUMENT, NULL },
	};
	bool ran;

	tested_layout = layout;
	matches = mismatches = 0;
	stack_text = fork_kept_alloc(TEXT_BYTES);
	if (!stack_text)
		return PYTHON_TROUBLE_NO_MEMORY_FILE;
	ran = python_run(LABEL, selftest_source, functions, sizeof functions / sizeof functions[0]);
	fork_kept_free(stack_text, TEXT_BYTES);
	stack_text = NULL;
	if (mismatches)
		return PYTHON_TROUBLE_OTHER_FRAMES;
	return ran && matches == PROBES ? PYTHON_TROUBLE_NONE : PYTHON_TROUBLE_NOT_RUN;
}
