/* SPDX-License-Identifier: MIT */
#include "preload/nvtx/text.h"

#include "collector/process/fork_wiped_memory.h"
#include "preload/nvtx/handles.h"

#include <errno.h>
#include <string.h>
#include <wchar.h>

void nvtx_text_narrow(struct nvtx_text *text, const char *chars)
{
	text->chars = chars ? chars : "";
	text->allocated = NULL;
}

static char *put_utf8(char *p, uint32_t c)
{
	if (c < 0x80) {
		*p++ = (char)c;
		return p;
	}
	if (c < 0x800) {
		*p++ = (char)(0xC0 | c >> 6);
	} else {
		if (c < 0x10000) {
			*p++ = (char)(0xE0 | c >> 12);
		} else {
			*p++ = (char)(0xF0 | c >> 18);
			*p++ = (char)(0x80 | (c >> 12 & 63));
		}
		*p++ = (char)(0x80 | (c >> 6 & 63));
	}
	*p++ = (char)(0x80 | (c & 63));
	return p;
}

void nvtx_text_wide(struct nvtx_text *text, const wchar_t *chars)
{
	size_t count = chars ? wcslen(chars) : 0, room = count * 4 + 1;
	char *start = text->inline_chars, *p;

	text->allocated = NULL;
	text->chars = "";
	if (room > sizeof text->inline_chars) {
		start = text->allocated = fork_kept_alloc(room);
		text->allocated_bytes = room;
		if (!start)
			return;
	}
	p = start;
	for (size_t i = 0; i < count; i++)
		p = put_utf8(p, (uint32_t)chars[i] <= 0x10FFFF ? (uint32_t)chars[i] : 0xFFFD);
	*p = '\0';
	text->chars = start;
}

void nvtx_text_message(struct nvtx_text *text, int32_t type, nvtxMessageValue_t message)
{
	switch (type) {
	case NVTX_MESSAGE_TYPE_ASCII:
		nvtx_text_narrow(text, message.ascii);
		break;
	case NVTX_MESSAGE_TYPE_UNICODE:
		nvtx_text_wide(text, message.unicode);
		break;
	case NVTX_MESSAGE_TYPE_REGISTERED:
		nvtx_text_narrow(text, nvtx_handle_chars(nvtx_handle_of(message.registered)));
		break;
	default:
		nvtx_text_narrow(text, NULL);
	}
}

void nvtx_text_free(struct nvtx_text *text)
{
	int saved = errno;

	fork_kept_free(text->allocated, text->allocated_bytes);
	errno = saved;
}

/* Whether `field` is within the size that the caller gives for the event. */
#define HAS_FIELD(event, field) \
	((event)->size >= offsetof(nvtxEventAttributes_t, field) + sizeof(event)->field)

static uint64_t payload_bytes(const nvtxEventAttributes_t *event)
{
	switch (event->payloadType) {
	case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
	case NVTX_PAYLOAD_TYPE_INT32:
	case NVTX_PAYLOAD_TYPE_FLOAT:
		return event->payload.uiValue;
	}
	return event->payload.ullValue;
}

static void copy_payload(const nvtxEventAttributes_t *event, struct range_attributes *attributes)
{
	const nvtxPayloadData_t *extended;

	if (event->payloadType != (int32_t)NVTX_PAYLOAD_TYPE_EXT) {
		attributes->payload_type = (uint32_t)event->payloadType;
		attributes->payload = payload_bytes(event);
		return;
	}
	extended = (const nvtxPayloadData_t *)(uintptr_t)event->payload.ullValue;
	attributes->flags |= TRACE_EXTENDED_PAYLOAD;
	if (extended && event->reserved0 > 0)
		attributes->payload = extended->schemaId;
}

const struct range_attributes *nvtx_event_read(const nvtxEventAttributes_t *event,
	struct nvtx_text *text, struct range_attributes *attributes)
{
	memset(attributes, 0, sizeof *attributes);
	if (!event || !HAS_FIELD(event, message))
		nvtx_text_narrow(text, NULL);
	else
		nvtx_text_message(text, event->messageType, event->message);
	if (!event)
		return NULL;
	if (HAS_FIELD(event, category) && event->category) {
		attributes->category = event->category;
		attributes->flags |= TRACE_HAS_CATEGORY;
	}
	if (HAS_FIELD(event, color) && event->colorType == NVTX_COLOR_ARGB) {
		attributes->color = event->color;
		attributes->flags |= TRACE_HAS_COLOR;
	}
	if (HAS_FIELD(event, payload) && event->payloadType != NVTX_PAYLOAD_UNKNOWN)
		copy_payload(event, attributes);
	return attributes->flags || attributes->payload_type ? attributes : NULL;
}
