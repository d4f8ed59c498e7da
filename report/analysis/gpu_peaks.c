/* SPDX-License-Identifier: MIT */
#include "report/analysis/gpu_peaks.h"
#include "report/gpu/work_categories.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/text/builtin_table.h"
#include "report/base/escape.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r"

/* Includes the text of the table. The assembler finds the file from the project's root. */
__asm__(".pushsection .rodata\n"
	".hidden peaks_source\n"
	".global peaks_source\n"
	"peaks_source:\n"
	".incbin \"report/analysis/gpu_peaks.table\"\n"
	".byte 0\n"
	".popsection\n");
extern const char peaks_source[] __attribute__((visibility("hidden")));

/* The keys after the peaks. */
enum { KEY_MEMORY = PEAK_COUNT, KEY_SMS, KEYS };

static const char *const keys[KEYS] = {
#define X(id, name) [PEAK_##id] = #name,
	PEAKS(X)
#undef X
		[KEY_MEMORY] = "memory",
	[KEY_SMS] = "sms",
};

struct peaks_line {
	const char *pattern; /* NULL: the line is for an architecture */
	uint32_t major, minor;
	double values[KEYS];
};

struct peaks_table {
	char *text; /* of the file, cut into words */
	const char *path;
	struct peaks_line lines[PEAKS_LINES_MAX];
	unsigned count;
};

/* Returns a word of the file, escaped for a message. The buffer is static. */
static const char *printable_peaks_word(const char *word)
{
	static char text[64];

	escape_text(text, sizeof text, word, strlen(word), true);
	return text;
}

/* Returns the index of a key, or KEYS if there is none. */
static unsigned find_peaks_key(const char *word)
{
	unsigned key = 0;

	while (key < KEYS && strcmp(keys[key], word) != 0)
		key++;
	return key;
}

static void read_peak_value(
	const struct peaks_table *table, struct peaks_line *line, char *word, unsigned number)
{
	char *equals = strchr(word, '='), *end;
	const char *given = equals ? equals + 1 : "";
	unsigned key;
	double value;

	if (equals)
		*equals = '\0';
	key = find_peaks_key(word);
	if (!equals || key == KEYS)
		fatal(STATUS_USAGE,
			"%s:%u: `%s` is not KEY=NUMBER; keys are fp64, fp32, fp64_matrix, tf32, "
			"fp16, bf16, fp8, int8, memory and sms",
			table->path, number, printable_peaks_word(word));
	value = strtod(given, &end);
	if (*end || end == given || !isfinite(value) || value <= 0 || value > 1e9)
		fatal(STATUS_USAGE, "%s:%u: `%s` is not a number above 0", table->path, number,
			printable_peaks_word(given));
	line->values[key] = value;
}

/* Reads what a line is for. `word`: device or arch; `of`: the pattern or compute capability. */
static void read_peaks_subject(const struct peaks_table *table, struct peaks_line *line,
	const char *word, const char *of, unsigned number)
{
	char behind;

	if (!of || (strcmp(word, "device") != 0 && strcmp(word, "arch") != 0))
		fatal(STATUS_USAGE,
			"%s:%u: expected `device PATTERN KEY=NUMBER...` or `arch CAPABILITY "
			"KEY=NUMBER...`",
			table->path, number);
	if (*word == 'd')
		line->pattern = of;
	else if (sscanf(of, "%4u.%4u%c", &line->major, &line->minor, &behind) != 2)
		fatal(STATUS_USAGE, "%s:%u: `%s` is not a compute capability such as 9.0",
			table->path, number, printable_peaks_word(of));
}

static void read_peaks_line(void *context, char *text, unsigned number)
{
	struct peaks_table *table = context;
	char *rest, *word = strtok_r(text, BLANKS, &rest);
	struct peaks_line *line = &table->lines[table->count];

	if (!word || *word == '#')
		return;
	if (table->count == PEAKS_LINES_MAX)
		fatal(STATUS_USAGE, "%s:%u: too many GPUs; the limit is %u", table->path, number,
			PEAKS_LINES_MAX);
	read_peaks_subject(table, line, word, strtok_r(NULL, BLANKS, &rest), number);
	while ((word = strtok_r(NULL, BLANKS, &rest)))
		read_peak_value(table, line, word, number);
	table->count++;
}

struct peaks_table *peaks_read(const char *path)
{
	struct peaks_table *table = xcalloc(sizeof *table);

	table->path = path ? path : "built-in table of GPUs";
	table->text = builtin_table_read(path, peaks_source, "GPUs");
	builtin_table_for_lines(table->text, read_peaks_line, table);
	return table;
}

void peaks_free(struct peaks_table *table)
{
	if (!table)
		return;
	free(table->text);
	free(table);
}

static const struct peaks_line *find_peaks_line(
	const struct peaks_table *table, const struct peaks_device *device, bool by_name)
{
	for (unsigned i = 0; i < table->count; i++) {
		const struct peaks_line *line = &table->lines[i];

		if (by_name ? line->pattern && device->name_bytes &&
					category_matches(
						line->pattern, device->name, device->name_bytes)
			    : !line->pattern && line->major == device->major &&
					line->minor == device->minor)
			return line;
	}
	return NULL;
}

static void use_table_peaks(
	const struct peaks_line *line, const struct peaks_device *device, struct peaks *peaks)
{
	const double sms = line->values[KEY_SMS];
	const bool other = sms > 0 && device->multiprocessors &&
			   (double)device->multiprocessors != sms;

	peaks->from = other ? PEAKS_FROM_PARTIAL_GPU : PEAKS_FROM_TABLE;
	for (unsigned i = 0; i < PEAK_COUNT; i++)
		peaks->flops[i] = line->values[i] * 1e12 *
				  (other ? device->multiprocessors / sms : 1);
	peaks->bytes = other ? 0 : line->values[KEY_MEMORY] * 1e9;
}

/* Memory moves data twice a clock cycle. */
static double attribute_bandwidth(const struct peaks_device *device)
{
	return 2.0 * (double)device->memory_clock_hz * (double)device->bus_bits / 8;
}

bool peaks_find(
	const struct peaks_table *table, const struct peaks_device *device, struct peaks *peaks)
{
	const struct peaks_line *line = find_peaks_line(table, device, true);

	*peaks = (struct peaks){ .from = PEAKS_FROM_ATTRIBUTES };
	if (line) {
		use_table_peaks(line, device, peaks);
		if (peaks->bytes <= 0 && peaks->from == PEAKS_FROM_TABLE)
			peaks->bytes = attribute_bandwidth(device);
		return true;
	}
	line = find_peaks_line(table, device, false);
	for (unsigned i = 0; line && i < PEAK_COUNT; i++)
		peaks->flops[i] = line->values[i] * (double)device->multiprocessors *
				  (double)device->clock_hz;
	peaks->bytes = attribute_bandwidth(device);
	if (peaks->bytes <= 0 && peaks->flops[PEAK_FP32] <= 0)
		peaks->from = PEAKS_NONE;
	return peaks->from != PEAKS_NONE;
}

double peaks_flops(const struct peaks *peaks, enum element_type element, bool matrix)
{
	static const enum peak products[ELEMENT_COUNT] = { [ELEMENT_FP64] = PEAK_FP64_MATRIX,
		[ELEMENT_FP32] = PEAK_FP32,
		[ELEMENT_TF32] = PEAK_TF32,
		[ELEMENT_FP16] = PEAK_FP16,
		[ELEMENT_BF16] = PEAK_BF16,
		[ELEMENT_FP8] = PEAK_FP8,
		[ELEMENT_INT8] = PEAK_INT8 };

	if (element == ELEMENT_UNKNOWN || (element > ELEMENT_INT8 && matrix))
		return 0;
	/* Smaller types than 32 bits compute on the 32-bit units. Integer units are separate, and
	 * not in the table. */
	if (!matrix)
		return element == ELEMENT_FP64  ? peaks->flops[PEAK_FP64]
		       : element <= ELEMENT_FP8 ? peaks->flops[PEAK_FP32]
						: 0;
	if (element == ELEMENT_FP64 && peaks->flops[PEAK_FP64_MATRIX] <= 0)
		return peaks->flops[PEAK_FP64];
	return peaks->flops[products[element]];
}
