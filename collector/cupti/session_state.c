/* SPDX-License-Identifier: MIT */
#include "collector/cupti/session_state.h"

#include "collector/file/dictionary.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CALL_IDS 1024u

struct cupti_session *cupti_session;
static _Atomic uint32_t call_names[2][CALL_IDS];

void cupti_set_state(const char *key, const char *format, ...)
{
	char text[CUPTI_REASON_BYTES + 64];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	meta_set(key, text);
}

uint32_t cupti_call_name(int domain, uint32_t cbid)
{
	const struct cupti_library *cupti = &cupti_session->library;
	_Atomic uint32_t *cached = cbid < CALL_IDS ? &call_names[domain - 1][cbid] : NULL;
	uint32_t id = cached ? atomic_load_explicit(cached, memory_order_relaxed) : 0;
	const char *name = NULL;

	if (id)
		return id;
	if (!cupti->callback_name || cupti->callback_name(domain, cbid, &name) != CUPTI_OK || !name)
		return 0;
	id = name_id_always(name, strlen(name));
	if (cached)
		atomic_store_explicit(cached, id, memory_order_relaxed);
	return id;
}
