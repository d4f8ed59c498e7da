/* cuInit, contexts, and which of them is current to a thread. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "core/entry.h"

#define CURRENT_DEPTH 16

enum init_state {
	INIT_NEVER,
	INIT_RUNNING,
	INIT_DONE,
};

/* Recursive: the injected library may call cuInit itself. */
static pthread_mutex_t init_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static enum init_state init_state;

static struct sim_context *contexts;
static uint32_t context_count;
static struct sim_context *primaries[SIM_DEVICES_MAX];
static unsigned primary_flags[SIM_DEVICES_MAX];
static _Thread_local struct sim_context *current[CURRENT_DEPTH];
static _Thread_local unsigned depth;

/* CUDA_INJECTION64_PATH: loaded once, before any context; what cannot be loaded is ignored, as in
 * reality. */
static void load_injection(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	int (*start)(void);
	void *library;

	if (!path || !*path)
		return;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return;
	*(void **)&start = dlsym(library, "InitializeInjection");
	if (start)
		start();
}

static void initialise_once(void)
{
	__atomic_store_n(&init_state, INIT_RUNNING, __ATOMIC_RELEASE);
	watch_forks();
	load_injection();
	__atomic_store_n(&init_state, INIT_DONE, __ATOMIC_RELEASE);
	tell_resource(&(struct sim_resource){ .kind = SIM_CU_INIT_FINISHED });
}

CUresult initialise(void)
{
	if (settings()->devices == 0)
		return CUDA_ERROR_NO_DEVICE;
	if (__atomic_load_n(&init_state, __ATOMIC_ACQUIRE) == INIT_DONE)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&init_lock);
	if (__atomic_load_n(&init_state, __ATOMIC_ACQUIRE) == INIT_NEVER)
		initialise_once();
	pthread_mutex_unlock(&init_lock);
	return CUDA_SUCCESS;
}

SIM_EXPORT bool sim_initialised(void)
{
	return __atomic_load_n(&init_state, __ATOMIC_ACQUIRE) == INIT_DONE && !sim_forked();
}

CUresult require_init(void)
{
	return __atomic_load_n(&init_state, __ATOMIC_ACQUIRE) != INIT_NEVER
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_NOT_INITIALIZED;
}

bool context_valid(const struct sim_context *context)
{
	bool valid = false;

	core_lock();
	for (const struct sim_context *c = contexts; c && !valid; c = c->next)
		valid = c == context && c->alive;
	core_unlock();
	return valid;
}

static CUresult check_device(int device)
{
	TRY(require_init());
	return device >= 0 && device < settings()->devices ? CUDA_SUCCESS
							   : CUDA_ERROR_INVALID_DEVICE;
}

/* The lock must be held. */
static struct sim_context *context_new(unsigned flags, int device, bool primary)
{
	struct sim_context *context = zalloc(sizeof(*context));

	context->id = ++context_count;
	context->device = device;
	context->flags = flags;
	context->primary = primary;
	context->alive = true;
	context->charged = memory_charge(device, settings()->context) ? settings()->context : 0;
	context->next = contexts;
	contexts = context;
	context->null_stream = stream_new(context, 0, 0);
	return context;
}

static void tell_created(struct sim_context *context)
{
	tell_resource(&(struct sim_resource){
		.kind = SIM_CONTEXT_CREATED,
		.context = context,
	});
	tell_resource(&(struct sim_resource){
		.kind = SIM_STREAM_CREATED,
		.context = context,
		.stream = context->null_stream,
	});
}

CUresult context_create(struct sim_context **context, unsigned flags, int device)
{
	TRY(check_device(device));
	core_lock();
	*context = context_new(flags, device, false);
	core_unlock();
	tell_created(*context);
	return context_push(*context);
}

/* What belongs to the context goes with it. */
static void context_end(struct sim_context *context)
{
	tell_resource(&(struct sim_resource){
		.kind = SIM_CONTEXT_DESTROY_STARTING,
		.context = context,
	});
	core_lock();
	__atomic_store_n(&context->alive, false, __ATOMIC_RELAXED);
	streams_release(context);
	memory_release_context(context);
	memory_discharge(context->device, context->charged);
	core_unlock();
}

CUresult context_destroy(struct sim_context *context)
{
	if (!context_valid(context) || context->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	context_end(context);
	if (depth && current[depth - 1] == context)
		depth--;
	return CUDA_SUCCESS;
}

CUresult primary_retain(struct sim_context **context, int device)
{
	bool created = false;

	TRY(check_device(device));
	core_lock();
	if (!primaries[device]) {
		primaries[device] = context_new(primary_flags[device], device, true);
		created = true;
	}
	primaries[device]->retained++;
	*context = primaries[device];
	core_unlock();
	if (created)
		tell_created(*context);
	return CUDA_SUCCESS;
}

/* Takes the primary context away from the device; NULL: it has none, or `still` holds of it. */
static struct sim_context *primary_take(int device, bool (*still)(struct sim_context *))
{
	struct sim_context *context;

	core_lock();
	context = primaries[device];
	if (context && still && still(context))
		context = NULL;
	if (context)
		primaries[device] = NULL;
	core_unlock();
	return context;
}

static bool release_leaves_it(struct sim_context *context)
{
	return --context->retained > 0;
}

CUresult primary_release(int device)
{
	struct sim_context *context;

	TRY(check_device(device));
	context = primary_take(device, release_leaves_it);
	if (context)
		context_end(context);
	return CUDA_SUCCESS;
}

CUresult primary_reset(int device)
{
	struct sim_context *context;

	TRY(check_device(device));
	context = primary_take(device, NULL);
	if (context)
		context_end(context);
	return CUDA_SUCCESS;
}

CUresult primary_set_flags(int device, unsigned flags)
{
	TRY(check_device(device));
	core_lock();
	primary_flags[device] = flags;
	if (primaries[device])
		primaries[device]->flags = flags;
	core_unlock();
	return CUDA_SUCCESS;
}

bool primary_state(int device, unsigned *flags)
{
	bool active;

	core_lock();
	active = primaries[device] != NULL;
	*flags = primary_flags[device];
	core_unlock();
	return active;
}

CUresult context_set_current(struct sim_context *context)
{
	TRY(require_init());
	if (context && !context_valid(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!context) {
		depth -= depth > 0;
		return CUDA_SUCCESS;
	}
	if (depth == 0)
		depth = 1;
	current[depth - 1] = context;
	return CUDA_SUCCESS;
}

CUresult context_push(struct sim_context *context)
{
	TRY(require_init());
	if (!context_valid(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth == CURRENT_DEPTH)
		return CUDA_ERROR_INVALID_VALUE;
	current[depth++] = context;
	return CUDA_SUCCESS;
}

CUresult context_pop(struct sim_context **context)
{
	TRY(require_init());
	if (depth == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (context)
		*context = current[depth];
	return CUDA_SUCCESS;
}

/* A context that another thread destroyed is current to nobody. */
SIM_EXPORT struct sim_context *sim_context_current(void)
{
	struct sim_context *context = depth ? current[depth - 1] : NULL;

	return context && __atomic_load_n(&context->alive, __ATOMIC_RELAXED) ? context : NULL;
}

CUresult context_error(const struct sim_context *context)
{
	uint64_t fault = context->fault_ns;

	return fault && sim_time_ns() >= fault ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

CUresult require_context(struct sim_context **context)
{
	TRY(require_init());
	*context = sim_context_current();
	if (!*context)
		return CUDA_ERROR_INVALID_CONTEXT;
	return context_error(*context);
}

SIM_EXPORT uint32_t sim_context_id(const struct sim_context *context)
{
	return context ? context->id : 0;
}

SIM_EXPORT int sim_context_device(const struct sim_context *context)
{
	return context->device;
}

SIM_EXPORT uint32_t sim_context_null_stream(const struct sim_context *context)
{
	return context->null_stream->id;
}

/* Copies what lives under the lock, then visits without it. */
SIM_EXPORT void sim_visit_resources(
	void (*visit)(const struct sim_resource *resource, void *data), void *data)
{
	struct sim_resource *found = NULL;
	size_t count = 0;

	core_lock();
	for (struct sim_context *c = contexts; c; c = c->next) {
		if (!c->alive)
			continue;
		found = grow(found, (count + 1) * sizeof(*found));
		found[count++] = (struct sim_resource){ .kind = SIM_CONTEXT_CREATED, .context = c };
		for (struct sim_stream *s = c->streams; s; s = s->next) {
			found = grow(found, (count + 1) * sizeof(*found));
			found[count++] = (struct sim_resource){
				.kind = SIM_STREAM_CREATED,
				.context = c,
				.stream = s,
			};
		}
	}
	core_unlock();
	for (size_t i = 0; i < count; i++)
		visit(&found[i], data);
	free(found);
}
