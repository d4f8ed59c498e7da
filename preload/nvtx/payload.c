/* SPDX-License-Identifier: MIT
 * The payload extension. Its events are recorded with the schema's name as their text and its id as
 * their payload. The bytes of a structured payload are not kept.
 */
#include "preload/nvtx/nvtx.h"

#include "collector/file/dictionary.h"
#include "collector/stream/ranges.h"
#include "preload/nvtx/handles.h"

#define SCHEMAS_MAX 4096u
#define FIRST_OWN_ID ((uint64_t)1 << 32) /* ids given by tools begin here */

static struct {
	uint64_t id;
	const char *name;
} schemas[SCHEMAS_MAX];
static uint32_t schema_count;

static uint64_t next_id(uint64_t requested)
{
	static uint64_t last = FIRST_OWN_ID;

	return requested ? requested : __atomic_fetch_add(&last, 1, __ATOMIC_RELAXED);
}

/* Stores the name of a schema. If the table is full, the name is dropped. */
static void remember_schema(uint64_t id, const char *name)
{
	const struct nvtx_handle *handle = name ? nvtx_handle_make(NVTX_HANDLE_STRING, 0, name)
						: NULL;
	uint32_t slot;

	if (!handle)
		return;
	slot = __atomic_fetch_add(&schema_count, 1, __ATOMIC_RELAXED);
	if (slot >= SCHEMAS_MAX)
		return;
	schemas[slot].name = nvtx_handle_chars(handle);
	__atomic_store_n(&schemas[slot].id, id, __ATOMIC_RELEASE);
}

static const char *schema_name(uint64_t id)
{
	uint32_t count = __atomic_load_n(&schema_count, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < count && i < SCHEMAS_MAX; i++)
		if (__atomic_load_n(&schemas[i].id, __ATOMIC_ACQUIRE) == id)
			return schemas[i].name;
	return "payload";
}

static uint64_t NVTX_API schema_register(
	nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t *attributes)
{
	uint64_t mask = attributes ? attributes->fieldMask : 0;
	uint64_t id = next_id(
		mask & NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID ? attributes->schemaId : 0);

	(void)domain;
	if (mask & NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME)
		remember_schema(id, attributes->name);
	return id;
}

static uint64_t NVTX_API enum_register(
	nvtxDomainHandle_t domain, const nvtxPayloadEnumAttr_t *attributes)
{
	(void)domain;
	return next_id(attributes && attributes->fieldMask & NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID
			       ? attributes->schemaId
			       : 0);
}

static uint64_t NVTX_API scope_register(
	nvtxDomainHandle_t domain, const nvtxScopeAttr_t *attributes)
{
	(void)domain;
	(void)attributes;
	return next_id(0);
}

static const char *event_text(
	const nvtxPayloadData_t *payload, size_t count, struct range_attributes *attributes)
{
	*attributes = (struct range_attributes){ .flags = TRACE_EXTENDED_PAYLOAD };
	if (!payload || !count)
		return "payload";
	attributes->payload = payload->schemaId;
	return schema_name(payload->schemaId);
}

static void NVTX_API mark_payload(
	nvtxDomainHandle_t domain, const nvtxPayloadData_t *payload, size_t count)
{
	struct range_attributes attributes;
	const char *text = event_text(payload, count, &attributes);

	range_mark(nvtx_domain_of(domain), text, &attributes);
}

static int NVTX_API push_payload(
	nvtxDomainHandle_t domain, const nvtxPayloadData_t *payload, size_t count)
{
	struct range_attributes attributes;
	const char *text = event_text(payload, count, &attributes);

	return range_push(nvtx_domain_of(domain), text, &attributes);
}

static int NVTX_API pop_payload(
	nvtxDomainHandle_t domain, const nvtxPayloadData_t *payload, size_t count)
{
	(void)payload;
	(void)count;
	return range_pop(nvtx_domain_of(domain));
}

static nvtxRangeId_t NVTX_API start_payload(
	nvtxDomainHandle_t domain, const nvtxPayloadData_t *payload, size_t count)
{
	struct range_attributes attributes;
	const char *text = event_text(payload, count, &attributes);

	return range_start(nvtx_domain_of(domain), text, &attributes);
}

static void NVTX_API end_payload(
	nvtxDomainHandle_t domain, nvtxRangeId_t id, const nvtxPayloadData_t *payload, size_t count)
{
	(void)domain;
	(void)payload;
	(void)count;
	range_end(id);
}

/* Annotations that the program guards by this test are always enabled. */
static uint8_t NVTX_API domain_is_enabled(nvtxDomainHandle_t domain)
{
	(void)domain;
	return 1;
}

const struct nvtx_extension_entry nvtx_payload_entries[] = {
	{ NVTX3EXT_CBID_nvtxPayloadSchemaRegister, (intptr_t)schema_register },
	{ NVTX3EXT_CBID_nvtxPayloadEnumRegister, (intptr_t)enum_register },
	{ NVTX3EXT_CBID_nvtxMarkPayload, (intptr_t)mark_payload },
	{ NVTX3EXT_CBID_nvtxRangePushPayload, (intptr_t)push_payload },
	{ NVTX3EXT_CBID_nvtxRangePopPayload, (intptr_t)pop_payload },
	{ NVTX3EXT_CBID_nvtxRangeStartPayload, (intptr_t)start_payload },
	{ NVTX3EXT_CBID_nvtxRangeEndPayload, (intptr_t)end_payload },
	{ NVTX3EXT_CBID_nvtxDomainIsEnabled, (intptr_t)domain_is_enabled },
	{ NVTX3EXT_CBID_nvtxScopeRegister, (intptr_t)scope_register },
};
const unsigned nvtx_payload_entry_count = sizeof nvtx_payload_entries /
					  sizeof nvtx_payload_entries[0];
