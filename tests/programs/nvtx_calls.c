/* SPDX-License-Identifier: MIT
 * nvtx_calls EXPECTED [COPY]: calls every function of NVTX 3 that leaves something in the trace,
 * writes what it called to EXPECTED, checks what the calls return. COPY is a library with an NVTX
 * instance of its own (lib_nvtx_copy.so), loaded in the middle.
 */
#include "expect.h"
#include <dlfcn.h>
#include <wchar.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvToolsExtSync.h>

static nvtxEventAttributes_t attributes_of(const char *message)
{
	nvtxEventAttributes_t attributes = { 0 };

	attributes.version = NVTX_VERSION;
	attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	attributes.messageType = message ? NVTX_MESSAGE_TYPE_ASCII : NVTX_MESSAGE_UNKNOWN;
	attributes.message.ascii = message;
	return attributes;
}

static void push(const char *name, int level)
{
	expect_named("push", name, NULL);
	expect_value("nvtxRangePushA", nvtxRangePushA(name), level);
}

static void pop(const char *name, int level)
{
	expect_named("pop", name, NULL);
	expect_value("nvtxRangePop", nvtxRangePop(), level);
}

static void push_wide(const wchar_t *name, const char *utf8)
{
	expect_named("push", utf8, NULL);
	expect_value("nvtxRangePushW", nvtxRangePushW(name), 0);
	expect_named("pop", utf8, NULL);
	expect_value("nvtxRangePop", nvtxRangePop(), 0);
}

static void nested_ranges(void)
{
	push("outer", 0);
	push("inner", 1);
	push("innermost", 2);
	pop("innermost", 2);
	push("innermost", 2);
	pop("innermost", 2);
	pop("inner", 1);
	pop("outer", 0);
	expect_value("nvtxRangePop of nothing", nvtxRangePop() < 0, 1);
	push("after a pop too many", 0);
	pop("after a pop too many", 0);
}

static void wide_texts(void)
{
	push_wide(L"wide", "wide");
	push_wide(L"gr\u00f6\u00dfe \u4e2d\u6587", "gr\xc3\xb6\xc3\x9f"
						   "e \xe4\xb8\xad\xe6\x96\x87");
	push_wide(L"\U0001F680 end", "\xf0\x9f\x9a\x80 end");
	expect_named("mark", "wide mark", NULL);
	nvtxMarkW(L"wide mark");
	expect_named("start", "wide start", NULL);
	nvtxRangeId_t id = nvtxRangeStartW(L"wide start");
	expect_named("end", "wide start", NULL);
	nvtxRangeEnd(id);
}

/* The same buffer again and again, as an interpreter does, and texts that look alike. */
static void volatile_texts(void)
{
	char buffer[64];

	for (int i = 0; i < 300; i++) {
		snprintf(buffer, sizeof buffer, "iteration %d", i % 100);
		expect_named("push", buffer, NULL);
		nvtxRangePushA(buffer);
		memset(buffer, 'x', sizeof buffer - 1);
		snprintf(buffer, sizeof buffer, "iteration %d", i % 100);
		expect_named("pop", buffer, NULL);
		nvtxRangePop();
	}
}

static void hostile_texts(void)
{
	static const char *const texts[] = { "", " ", "\x1b[31mred\x1b[0m",
		"line\nbreak\ttab\rreturn", "\"quoted\" \\ back/slash", "\xff\xfe not UTF-8 \x80",
		"\xc0\xaf overlong", "\xed\xa0\x80 surrogate", "\xf4\x90\x80\x80 beyond",
		"cut \xe2\x82", "%s%n%d", "<script>alert(1)</script>", "\x01\x02\x7f", "null",
		"a/b\\/c", "name, seq = 3" };

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		push(texts[i], 0);
		pop(texts[i], 0);
	}
}

/* Longer than what is kept: see TRACE_TEXT_MAX. */
static void long_texts(void)
{
	static const size_t lengths[] = { 255, 256, 4000, 59999, 60000, 60001, 70000 };
	static char text[70001], kept[70001];

	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		memset(text, 'a' + (int)i, lengths[i]);
		text[lengths[i]] = 0;
		strcpy(kept, text);
		if (lengths[i] > 60000)
			strcpy(kept + 60000 - strlen("...[cut]"), "...[cut]");
		expect_named("push", kept, NULL);
		nvtxRangePushA(text);
		expect_named("pop", kept, NULL);
		nvtxRangePop();
	}
}

static void expect_attributes(const char *kind, const nvtxEventAttributes_t *attributes,
	const char *name, const char *domain)
{
	struct expected *event = expect_event(kind);

	expect_text(event, "name", name);
	expect_text(event, "domain", domain);
	if (attributes->category)
		expect_number(event, "category", attributes->category);
	if (attributes->colorType == NVTX_COLOR_ARGB)
		expect_number(event, "color", attributes->color);
	if (attributes->payloadType != NVTX_PAYLOAD_UNKNOWN)
		expect_payload(event, attributes->payloadType, &attributes->payload);
	expect_done(event);
}

/* As a push, a mark and a start/end range, in one domain. */
static void every_way(nvtxDomainHandle_t domain, const char *domain_name,
	const nvtxEventAttributes_t *attributes, const char *name)
{
	expect_attributes("push", attributes, name, domain_name);
	expect_value("nvtxDomainRangePushEx", nvtxDomainRangePushEx(domain, attributes), 0);
	expect_attributes("mark", attributes, name, domain_name);
	nvtxDomainMarkEx(domain, attributes);
	expect_attributes("start", attributes, name, domain_name);
	nvtxRangeId_t id = nvtxDomainRangeStartEx(domain, attributes);
	expect_named("pop", name, domain_name);
	expect_value("nvtxDomainRangePop", nvtxDomainRangePop(domain), 0);
	expect_named("end", name, domain_name);
	nvtxDomainRangeEnd(domain, id);
	expect_value("a range's id is 0", id == 0, 0);
}

static void attributes_and_payloads(nvtxDomainHandle_t domain, const char *domain_name)
{
	nvtxEventAttributes_t attributes = attributes_of("with attributes");

	every_way(domain, domain_name, &attributes, "with attributes");
	attributes.colorType = NVTX_COLOR_ARGB;
	attributes.color = 0xff102030;
	attributes.category = 7;
	every_way(domain, domain_name, &attributes, "with attributes");
	attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
	attributes.payload.ullValue = 0xfedcba9876543210u;
	every_way(domain, domain_name, &attributes, "with attributes");
	attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
	attributes.payload.llValue = INT64_MIN;
	every_way(domain, domain_name, &attributes, "with attributes");
	attributes.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	attributes.payload.dValue = 0.1;
	every_way(domain, domain_name, &attributes, "with attributes");
	attributes.payload.ullValue = 0;
	attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
	attributes.payload.uiValue = 0xfffffffeu;
	every_way(domain, domain_name, &attributes, "with attributes");
	attributes.payload.ullValue = 0;
	attributes.payloadType = NVTX_PAYLOAD_TYPE_INT32;
	attributes.payload.iValue = -5;
	every_way(domain, domain_name, &attributes, "with attributes");
	attributes.payload.ullValue = 0;
	attributes.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
	attributes.payload.fValue = 1.5f;
	every_way(domain, domain_name, &attributes, "with attributes");
}

static void messages(nvtxDomainHandle_t domain, const char *domain_name)
{
	nvtxEventAttributes_t attributes = attributes_of(NULL);

	every_way(domain, domain_name, &attributes, "");
	attributes.messageType = NVTX_MESSAGE_TYPE_UNICODE;
	attributes.message.unicode = L"\u20ac wide";
	every_way(domain, domain_name, &attributes, "\xe2\x82\xac wide");
	attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	attributes.message.registered = nvtxDomainRegisterStringA(domain, "registered");
	every_way(domain, domain_name, &attributes, "registered");
	attributes.message.registered = nvtxDomainRegisterStringW(domain, L"registered \u00fc");
	every_way(domain, domain_name, &attributes, "registered \xc3\xbc");
}

static void push_in(nvtxDomainHandle_t domain, const char *domain_name, const char *name, int level)
{
	nvtxEventAttributes_t attributes = attributes_of(name);

	expect_named("push", name, domain_name);
	expect_value("nvtxDomainRangePushEx", nvtxDomainRangePushEx(domain, &attributes), level);
}

static void pop_in(nvtxDomainHandle_t domain, const char *domain_name, const char *name, int level)
{
	expect_named("pop", name, domain_name);
	expect_value("nvtxDomainRangePop", nvtxDomainRangePop(domain), level);
}

/* Each domain has a stack of its own on each thread; the NULL domain is the default one. */
static void domains(void)
{
	nvtxDomainHandle_t red = nvtxDomainCreateA("red"), green = nvtxDomainCreateW(L"gr\u00fcn"),
			   again = nvtxDomainCreateA("red");

	push_in(red, "red", "r0", 0);
	push_in(green, "gr\xc3\xbcn", "g0", 0);
	push("d0", 0);
	push_in(red, "red", "r1", 1);
	pop_in(green, "gr\xc3\xbcn", "g0", 0);
	expect_value("a pop in an empty domain", nvtxDomainRangePop(green) < 0, 1);
	pop_in(again, "red", "r1", 1);
	push_in(NULL, NULL, "d1", 1);
	pop_in(red, "red", "r0", 0);
	pop("d1", 1);
	pop_in(NULL, NULL, "d0", 0);
	attributes_and_payloads(red, "red");
	messages(red, "red");
	nvtxDomainDestroy(green);
	push_in(red, "red", "after another domain's end", 0);
	pop_in(red, "red", "after another domain's end", 0);
}

/* Older headers give shorter or lower-versioned structs; what `size` does not cover is not there.
 */
static void versions(void)
{
	nvtxEventAttributes_t attributes = attributes_of("version 1");

	attributes.version = 1;
	expect_named("mark", "version 1", NULL);
	nvtxMarkEx(&attributes);
	attributes.message.ascii = "version 2";
	attributes.version = 2;
	expect_named("mark", "version 2", NULL);
	nvtxMarkEx(&attributes);
}

static nvtxRangeId_t crossing[8];

static void *end_elsewhere(void *unused)
{
	(void)unused;
	for (size_t i = 0; i < 8; i++) {
		char name[32];

		snprintf(name, sizeof name, "crossing %zu", i);
		expect_named("end", name, NULL);
		nvtxRangeEnd(crossing[i]);
	}
	return NULL;
}

static void start_and_end(void)
{
	pthread_t thread;

	for (size_t i = 0; i < 8; i++) {
		char name[32];

		snprintf(name, sizeof name, "crossing %zu", i);
		expect_named("start", name, NULL);
		crossing[i] = nvtxRangeStartA(name);
		for (size_t j = 0; j < i; j++)
			expect_value("two ranges have one id", crossing[i] == crossing[j], 0);
	}
	if (pthread_create(&thread, NULL, end_elsewhere, NULL))
		abort();
	pthread_join(thread, NULL);
}

static void name_object(const char *object_type, uint64_t object, const char *name)
{
	struct expected *event = expect_event("name");

	expect_text(event, "name", name);
	expect_text(event, "object_type", object_type);
	expect_number(event, "object", (int64_t)object);
	expect_done(event);
}

static void names(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("red");
	uint32_t tid = (uint32_t)syscall(SYS_gettid);

	name_object("category", 1, "one");
	nvtxNameCategoryA(1, "one");
	name_object("category", 2, "zw\xc3\xb6lf");
	nvtxNameCategoryW(2, L"zw\u00f6lf");
	name_object("category", 3, "three of red");
	nvtxDomainNameCategoryA(domain, 3, "three of red");
	name_object("category", 4, "four of red");
	nvtxDomainNameCategoryW(domain, 4, L"four of red");
	name_object("thread", tid, "main thread");
	nvtxNameOsThreadA(tid, "main thread");
	name_object("thread", tid, "main thread \xc3\xa9");
	nvtxNameOsThreadW(tid, L"main thread \u00e9");
}

#define NAME_BOTH(function, type, handle)                                \
	do {                                                             \
		name_object(type, (uintptr_t)(handle), "narrow");        \
		nvtxName##function##A(handle, "narrow");                 \
		name_object(type, (uintptr_t)(handle), "wide \xc3\xa9"); \
		nvtxName##function##W(handle, L"wide \u00e9");           \
	} while (0)

static void cuda_names(void)
{
	NAME_BOTH(CuDevice, "cu_device", 1);
	NAME_BOTH(CuContext, "cu_context", (CUcontext)0x1000);
	NAME_BOTH(CuStream, "cu_stream", (CUstream)0x2000);
	NAME_BOTH(CuEvent, "cu_event", (CUevent)0x3000);
	NAME_BOTH(CudaDevice, "cuda_device", 2);
	NAME_BOTH(CudaStream, "cuda_stream", (cudaStream_t)0x4000);
	NAME_BOTH(CudaEvent, "cuda_event", (cudaEvent_t)0x5000);
}

static void resources_and_locks(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("red");
	nvtxResourceAttributes_t resource = { 0 };
	nvtxSyncUserAttributes_t lock = { 0 };

	resource.version = NVTX_VERSION;
	resource.size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE;
	resource.identifierType = NVTX_RESOURCE_TYPE_GENERIC_POINTER;
	resource.identifier.pValue = (const void *)0xabc0;
	resource.messageType = NVTX_MESSAGE_TYPE_ASCII;
	resource.message.ascii = "a resource";
	expect_named("name", "a resource", "red");
	nvtxResourceHandle_t handle = nvtxDomainResourceCreate(domain, &resource);
	expect_value("a resource's handle is NULL", handle == NULL, 0);
	lock.version = NVTX_VERSION;
	lock.size = NVTX_SYNCUSER_ATTRIB_STRUCT_SIZE;
	lock.messageType = NVTX_MESSAGE_TYPE_ASCII;
	lock.message.ascii = "a lock";
	expect_named("name", "a lock", "red");
	nvtxSyncUser_t user = nvtxDomainSyncUserCreate(domain, &lock);
	expect_value("a lock's handle is NULL", user == NULL, 0);
	nvtxDomainSyncUserAcquireStart(user);
	nvtxDomainSyncUserAcquireFailed(user);
	nvtxDomainSyncUserAcquireStart(user);
	nvtxDomainSyncUserAcquireSuccess(user);
	nvtxDomainSyncUserReleasing(user);
	nvtxDomainSyncUserDestroy(user);
	nvtxDomainResourceDestroy(handle);
}

static void sample(nvtxDomainHandle_t domain, uint64_t counter, const char *name, int64_t value)
{
	struct expected *event = expect_event("metric");

	expect_text(event, "name", name);
	expect_number(event, "value", value);
	expect_done(event);
	nvtxCounterSampleInt64(domain, counter, value);
}

static void counters(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("red");
	nvtxCounterAttr_t attributes = { 0 };

	attributes.structSize = sizeof attributes;
	attributes.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_INT64;
	attributes.name = "queue length";
	uint64_t integer = nvtxCounterRegister(domain, &attributes);
	attributes.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE;
	attributes.name = "loss";
	uint64_t real = nvtxCounterRegister(domain, &attributes);
	expect_value("two counters have one id", integer == real, 0);
	sample(domain, integer, "queue length", 3);
	sample(domain, integer, "queue length", -9007199254740993);
	for (int i = 0; i < 3; i++) {
		struct expected *event = expect_event("metric");
		double value = 0.25 * i;

		expect_text(event, "name", "loss");
		event->length += (size_t)sprintf(
			event->text + event->length, ", \"value\": %.17g", value);
		expect_done(event);
		if (i < 2)
			nvtxCounterSampleFloat64(domain, real, value);
		else
			nvtxCounterSample(domain, real, &value, sizeof value);
	}
}

/* Libraries ask first; an answer of 0 would silence them. */
static void payload_extension(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("red");
	nvtxPayloadSchemaEntry_t entries[] = { { 0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "bytes", NULL, 0,
		0, NULL, NULL } };
	nvtxPayloadSchemaAttr_t schema = { 0 };
	int value = 4096;

	expect_value("nvtxDomainIsEnabled", nvtxDomainIsEnabled(domain), 1);
	schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
			   NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
			   NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
			   NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
	schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
	schema.entries = entries;
	schema.numEntries = 1;
	schema.payloadStaticSize = sizeof value;
	nvtxPayloadData_t payload = { nvtxPayloadSchemaRegister(domain, &schema), sizeof value,
		&value };
	expect_value("a schema's id is 0", payload.schemaId == 0, 0);
	nvtxEventAttributes_t attributes = attributes_of("collective");
	attributes.payloadType = (int32_t)NVTX_PAYLOAD_TYPE_EXT;
	attributes.reserved0 = 1;
	attributes.payload.ullValue = (uintptr_t)&payload;
	expect_named("push", "collective", "red");
	expect_value("nvtxDomainRangePushEx", nvtxDomainRangePushEx(domain, &attributes), 0);
	pop_in(domain, "red", "collective", 0);
	expect_named("push", "payload", "red"); /* it has no message to go by */
	expect_value("nvtxRangePushPayload", nvtxRangePushPayload(domain, &payload, 1), 0);
	expect_named("pop", "payload", "red");
	expect_value("nvtxRangePopPayload", nvtxRangePopPayload(domain, &payload, 1), 0);
}

static void *symbol(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return found;
}

/* Two instances in one process share the stacks of a thread. */
static void second_instance(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	int (*copy_push)(const char *), (*copy_pop)(void),
		(*copy_domain_push)(const char *, const char *), (*copy_domain_pop)(const char *);
	uint64_t (*copy_start)(const char *);
	*(void **)&copy_push = symbol(library, "copy_push");
	*(void **)&copy_pop = symbol(library, "copy_pop");
	*(void **)&copy_start = symbol(library, "copy_start");
	*(void **)&copy_domain_push = symbol(library, "copy_domain_push");
	*(void **)&copy_domain_pop = symbol(library, "copy_domain_pop");

	push("in the program", 0);
	expect_named("push", "in the library", NULL);
	expect_value("push in the library", copy_push("in the library"), 1);
	push("in the program again", 2);
	expect_named("pop", "in the program again", NULL);
	expect_value("pop in the library", copy_pop(), 2);
	pop("in the library", 1);
	expect_named("push", "of both", "red");
	expect_value("push in the library's domain", copy_domain_push("red", "of both"), 0);
	pop_in(nvtxDomainCreateA("red"), "red", "of both", 0);
	push_in(nvtxDomainCreateA("red"), "red", "of both", 0);
	expect_named("pop", "of both", "red");
	expect_value("pop in the library's domain", copy_domain_pop("red"), 0);
	pop("in the program", 0);
	expect_named("start", "started in the library", NULL);
	uint64_t id = copy_start("started in the library");
	expect_named("end", "started in the library", NULL);
	nvtxRangeEnd(id);
}

static void *on_a_thread(void *unused)
{
	(void)unused;
	nested_ranges();
	volatile_texts();
	domains();
	return NULL;
}

int main(int count, char **arguments)
{
	pthread_t threads[3];

	expect_open(count > 1 ? arguments[1] : "/dev/stdout");
	nvtxInitialize(NULL);
	nested_ranges();
	wide_texts();
	volatile_texts();
	hostile_texts();
	long_texts();
	attributes_and_payloads(NULL, NULL);
	messages(NULL, NULL);
	domains();
	versions();
	start_and_end();
	names();
	cuda_names();
	resources_and_locks();
	counters();
	payload_extension();
	if (count > 2)
		second_instance(arguments[2]);
	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, on_a_thread, NULL))
			abort();
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	push("left open", 0);
	return expect_close();
}
