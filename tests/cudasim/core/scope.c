/* Calls in progress: counted, numbered, and told to the tool. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "core/entry.h"

/* Made from CUPTI's headers; sorted by name in each domain. */
struct cbid {
	const char *name;
	int id;
};

static const struct cbid driver_cbids[] = {
#include "cbids_driver.h"
};
static const struct cbid runtime_cbids[] = {
#include "cbids_runtime.h"
};

static const struct sim_tools *tools;
static uint32_t correlations;
static struct sim_function *called;
static _Thread_local const struct sim_scope *innermost;

static const struct sim_tools *tool(void)
{
	/* Acquire: the tool's own set-up happened before it was installed. */
	return __atomic_load_n(&tools, __ATOMIC_ACQUIRE);
}

SIM_EXPORT void sim_tools_set(const struct sim_tools *new_tools)
{
	__atomic_store_n(&tools, new_tools, __ATOMIC_RELEASE);
}

SIM_EXPORT uint32_t sim_next_correlation(void)
{
	uint32_t id;

	do
		id = __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED);
	while (id == 0);
	return id;
}

SIM_EXPORT void sim_restart_correlation(void)
{
	__atomic_store_n(&correlations, 0, __ATOMIC_RELAXED);
}

static int by_name(const void *key, const void *element)
{
	return strcmp(key, ((const struct cbid *)element)->name);
}

SIM_EXPORT int sim_cbid(enum sim_domain domain, const char *name)
{
	const struct cbid *table = domain == SIM_DRIVER ? driver_cbids : runtime_cbids;
	size_t bytes = domain == SIM_DRIVER ? sizeof(driver_cbids) : sizeof(runtime_cbids);
	const struct cbid *found = bsearch(
		name, table, bytes / sizeof(*table), sizeof(*table), by_name);

	return found ? found->id : 0;
}

SIM_EXPORT const char *sim_cbid_name(enum sim_domain domain, int cbid)
{
	const struct cbid *table = domain == SIM_DRIVER ? driver_cbids : runtime_cbids;
	size_t bytes = domain == SIM_DRIVER ? sizeof(driver_cbids) : sizeof(runtime_cbids);

	for (size_t i = 0; i < bytes / sizeof(*table); i++)
		if (table[i].id == cbid)
			return table[i].name;
	return NULL;
}

/* Puts the function on the list of those called. */
static void get_to_know(struct sim_function *function)
{
	core_lock();
	if (!function->known) {
		function->cbid = sim_cbid(function->domain, function->name);
		function->next = called;
		called = function;
		__atomic_store_n(&function->known, true, __ATOMIC_RELEASE);
	}
	core_unlock();
}

SIM_EXPORT void sim_enter(struct sim_scope *scope)
{
	struct sim_function *function = scope->function;

	if (!__atomic_load_n(&function->known, __ATOMIC_ACQUIRE))
		get_to_know(function);
	__atomic_add_fetch(&function->calls, 1, __ATOMIC_RELAXED);
	scope->outer = innermost;
	scope->correlation = innermost ? innermost->correlation : 0;
	if (scope->correlation == 0 && function->cbid != 0)
		scope->correlation = sim_next_correlation();
	scope->context = sim_context_current();
	scope->tools = function->cbid != 0 ? tool() : NULL;
	innermost = scope;
	if (scope->tools)
		scope->tools->api_enter(scope);
}

SIM_EXPORT void sim_leave(struct sim_scope *scope)
{
	scope->context = sim_context_current();
	if (scope->tools)
		scope->tools->api_exit(scope);
	innermost = scope->outer;
}

SIM_EXPORT const struct sim_scope *sim_current_scope(void)
{
	return innermost;
}

bool per_thread_call(void)
{
	return innermost && innermost->function->per_thread;
}

uint32_t current_correlation(void)
{
	return innermost ? innermost->correlation : 0;
}

void tell_work(const struct sim_work *work)
{
	const struct sim_tools *now = tool();

	if (now)
		now->work(work);
}

void tell_memory(const struct sim_memory *memory)
{
	const struct sim_tools *now = tool();

	if (now)
		now->memory(memory);
}

void tell_sync(const struct sim_sync *sync)
{
	const struct sim_tools *now = tool();

	if (now)
		now->sync(sync);
}

void tell_event(const struct sim_event_record *event)
{
	const struct sim_tools *now = tool();

	if (now)
		now->event(event);
}

void tell_resource(const struct sim_resource *resource)
{
	const struct sim_tools *now = tool();

	if (now)
		now->resource(resource);
}

uint64_t tool_node_delay(uint32_t graph_exec, uint32_t context)
{
	const struct sim_tools *now = tool();

	return now && now->node_delay ? now->node_delay(graph_exec, context) : 0;
}

SIM_EXPORT int sim_refuse(const char *name, int error)
{
	log_line("unsupported %s\n", name);
	if (settings()->say_stubs)
		fprintf(stderr, "cudasim: unsupported %s\n", name);
	return error;
}

SIM_EXPORT int sim_unsupported(const char *name)
{
	return sim_refuse(name, CUDA_ERROR_NOT_SUPPORTED);
}

static int by_function_name(const void *left, const void *right)
{
	const struct sim_function *const *a = left, *const *b = right;

	return strcmp((*a)->name, (*b)->name);
}

SIM_EXPORT void sim_dump(const char *label)
{
	struct sim_function **functions;
	size_t count = 0;

	core_lock();
	for (const struct sim_function *f = called; f; f = f->next)
		count++;
	functions = zalloc(count * sizeof(*functions));
	count = 0;
	for (struct sim_function *f = called; f; f = f->next)
		functions[count++] = f;
	core_unlock();
	qsort(functions, count, sizeof(*functions), by_function_name);
	fprintf(stderr, "[%s]", label);
	for (size_t i = 0; i < count; i++) {
		uint64_t calls = __atomic_exchange_n(&functions[i]->calls, 0, __ATOMIC_RELAXED);

		if (calls)
			fprintf(stderr, " %s*%llu", functions[i]->name, (unsigned long long)calls);
	}
	fprintf(stderr, "\n");
	free(functions);
}
