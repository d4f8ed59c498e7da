/* SPDX-License-Identifier: MIT
 * Compares the GPU numbers of the records with those of the described devices.
 */
#include "report/base/text_builder.h"
#include "report/import/convert/convert.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS_MAX 64u /* GPUs of one file that are compared */

struct gpu_numbers {
	uint64_t numbers[NUMBERS_MAX];
	size_t count;
};

static bool has_number(const struct gpu_numbers *gpus, uint64_t number)
{
	for (size_t i = 0; i < gpus->count; i++)
		if (gpus->numbers[i] == number)
			return true;
	return false;
}

static void add_number(struct gpu_numbers *gpus, uint64_t number)
{
	if (gpus->count < NUMBERS_MAX && !has_number(gpus, number))
		gpus->numbers[gpus->count++] = number;
}

static struct gpu_numbers described_gpus(const struct event_rows *imported)
{
	struct gpu_numbers gpus = { .count = 0 };

	for (size_t i = 0; i < imported->device_count; i++)
		add_number(&gpus, imported->devices[i].id);
	return gpus;
}

static struct gpu_numbers recorded_gpus(const struct event_rows *imported)
{
	struct gpu_numbers gpus = { .count = 0 };

	for (size_t i = 0; i < imported->gpu_count; i++)
		if (!i || imported->gpus[i].device != imported->gpus[i - 1].device)
			add_number(&gpus, imported->gpus[i].device);
	return gpus;
}

static void add_metadata(struct event_rows *imported, const char *key, struct text_builder *value)
{
	*EVENT_ROWS_ADD(imported, metadata, metadata) = (struct imported_metadata){
		.key = string_table_intern(imported->texts, key, strlen(key)),
		.value = string_table_intern(imported->texts, value->text, value->used)
	};
	free(value->text);
}

/* Gives the described GPU, and the tensors on it, the number `to` of the records. */
static void renumber(struct event_rows *imported, uint64_t from, uint64_t to)
{
	struct text_builder note = { .text = NULL };

	for (size_t i = 0; i < imported->device_count; i++)
		imported->devices[i].id = to;
	for (size_t i = 0; i < imported->memory_count; i++)
		if (imported->memories[i].type != 0 && imported->memories[i].device == from)
			imported->memories[i].device = (uint32_t)to;
	text_add(&note,
		"the file describes its only GPU as number %" PRIu64
		", its records name it %" PRIu64,
		from, to);
	add_metadata(imported, "import.devices", &note);
}

static void list_numbers(struct text_builder *line, const struct gpu_numbers *gpus)
{
	text_add(line, "GPU%s ", gpus->count == 1 ? "" : "s");
	for (size_t i = 0; i < gpus->count; i++)
		text_add(line, "%s%" PRIu64, i ? ", " : "", gpus->numbers[i]);
}

static void warn_of_undescribed(struct event_rows *imported, const struct gpu_numbers *described,
	const struct gpu_numbers *recorded)
{
	struct gpu_numbers unknown = { .count = 0 };
	struct text_builder line = { .text = NULL };

	for (size_t i = 0; i < recorded->count; i++)
		if (!has_number(described, recorded->numbers[i]))
			add_number(&unknown, recorded->numbers[i]);
	if (!unknown.count)
		return;
	text_add(&line, "the records name ");
	list_numbers(&line, &unknown);
	text_add(&line, ", but the file describes only ");
	list_numbers(&line, described);
	text_add(&line,
		"; name, number of multiprocessors and peak rates of %s are not known "
		"(HIP_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES renumber GPUs)",
		unknown.count == 1 ? "that GPU" : "those GPUs");
	add_metadata(imported, "warning.import_devices", &line);
}

void match_device_numbers(struct event_rows *imported)
{
	const struct gpu_numbers described = described_gpus(imported),
				 recorded = recorded_gpus(imported);

	if (!described.count || !recorded.count)
		return;
	if (described.count > 1 || recorded.count > 1)
		warn_of_undescribed(imported, &described, &recorded);
	else if (described.numbers[0] != recorded.numbers[0])
		renumber(imported, described.numbers[0], recorded.numbers[0]);
}
