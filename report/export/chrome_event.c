/* SPDX-License-Identifier: MIT */
#include "report/export/chrome_event.h"
#include "report/base/text_builder.h"
#include <stdlib.h>

struct string_view chrome_view(const char *string)
{
	return (struct string_view){ string, (uint32_t)strlen(string) };
}

void chrome_put_microseconds(struct output *out, uint64_t ns)
{
	const unsigned rest = (unsigned)(ns % 1000);
	const char digits[4] = { '.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
		(char)('0' + rest % 10) };

	output_unsigned(out, ns / 1000);
	if (rest)
		output_bytes(out, digits, rest % 10 ? 4 : rest % 100 ? 3 : 2);
}

void chrome_begin(struct chrome *chrome, char phase, const char *category, struct string_view name,
	uint64_t pid, uint64_t tid, uint64_t at_ns)
{
	struct output *out = chrome->out;

	output_string(out, chrome->event_count ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
	output_char(out, phase);
	if (category) {
		output_string(out, "\",\"cat\":\"");
		output_string(out, category);
	}
	output_string(out, "\",\"name\":");
	output_json_text(out, name.bytes, name.length);
	output_string(out, ",\"pid\":");
	output_unsigned(out, pid);
	output_string(out, ",\"tid\":");
	output_unsigned(out, tid);
	chrome->at_ns = at_ns + chrome->shift_ns;
	chrome->event_count++;
	chrome->has_args = chrome->has_duration = false;
}

void chrome_duration(struct chrome *chrome, uint64_t duration_ns)
{
	chrome->duration_ns = duration_ns;
	chrome->has_duration = true;
}

void chrome_member(struct chrome *chrome, const char *json)
{
	output_char(chrome->out, ',');
	output_string(chrome->out, json);
}

void chrome_id(struct chrome *chrome, uint64_t id)
{
	output_string(chrome->out, ",\"id\":");
	output_unsigned(chrome->out, chrome->first_id + id);
}

void chrome_arg_begin(struct chrome *chrome, const char *key)
{
	output_string(chrome->out, chrome->has_args ? ",\"" : ",\"args\":{\"");
	output_string(chrome->out, key);
	output_string(chrome->out, "\":");
	chrome->has_args = true;
}

void chrome_arg(struct chrome *chrome, const char *key, uint64_t value)
{
	chrome_arg_begin(chrome, key);
	output_unsigned(chrome->out, value);
}

void chrome_arg_signed(struct chrome *chrome, const char *key, int64_t value)
{
	chrome_arg_begin(chrome, key);
	output_signed(chrome->out, value);
}

void chrome_arg_text(struct chrome *chrome, const char *key, struct string_view text)
{
	chrome_arg_begin(chrome, key);
	output_json_text(chrome->out, text.bytes, text.length);
}

void chrome_arg_string(struct chrome *chrome, const char *key, const char *string)
{
	chrome_arg_text(chrome, key, chrome_view(string));
}

void chrome_arg_triple(struct chrome *chrome, const char *key, const uint32_t values[3])
{
	chrome_arg_begin(chrome, key);
	for (unsigned i = 0; i < 3; i++) {
		output_char(chrome->out, i ? ',' : '[');
		output_unsigned(chrome->out, values[i]);
	}
	output_char(chrome->out, ']');
}

static void add_frame(struct text_builder *text, struct trace_reader *reader,
	const struct trace_python_frame *frame)
{
	const struct trace_text file = reader_name(reader, frame->file),
				function = reader_name(reader, frame->function);

	if (text->used)
		text_add_bytes(text, ";", 1);
	if (file.known) {
		text_add_bytes(text, file.bytes, file.length);
		text_add(text, "(%u): ", frame->line);
	}
	text_add_bytes(text, function.bytes, function.length);
}

void chrome_arg_stack(struct chrome *chrome, uint32_t stack)
{
	struct trace_reader *reader = chrome->process->reader;
	const struct trace_python_stack *frames = reader_python_stack(reader, stack);
	struct text_builder text = { .text = NULL };

	if (!stack || !frames || !frames->frames)
		return;
	for (uint32_t i = 0; i < frames->frames; i++)
		add_frame(&text, reader, (const struct trace_python_frame *)(frames + 1) + i);
	chrome_arg_text(
		chrome, "Call stack", (struct string_view){ text.text, (uint32_t)text.used });
	free(text.text);
}

void chrome_end(struct chrome *chrome)
{
	output_string(chrome->out, chrome->has_args ? "},\"ts\":" : ",\"ts\":");
	chrome_put_microseconds(chrome->out, chrome->at_ns);
	if (chrome->has_duration) {
		output_string(chrome->out, ",\"dur\":");
		chrome_put_microseconds(chrome->out, chrome->duration_ns);
	}
	output_char(chrome->out, '}');
}

void chrome_put_arrow(struct chrome *chrome, char phase, uint64_t pid, uint64_t tid,
	uint64_t correlation, uint64_t at_ns)
{
	chrome_begin(chrome, phase, "ac2g", chrome_view("ac2g"), pid, tid, at_ns);
	if (phase == 'f')
		chrome_member(chrome, "\"bp\":\"e\"");
	chrome_id(chrome, correlation);
	chrome_end(chrome);
}
