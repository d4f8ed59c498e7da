/* SPDX-License-Identifier: MIT
 * CUPTI has one subscriber. What the client enables is enabled for our subscription, and its
 * callbacks are forwarded.
 *
 * There is one client. Another is refused, as CUPTI does. A callback may keep 64 bits from a call's
 * begin to its end. CUPTI has them once for each call, so they have one owner:
 *
 *   the call begins                        the 64 bits are
 *   while only the client has a callback   the client's
 *   during a handover (handover.h)         the client's
 *   while both have a callback             ours; the client finds 0, also if the call ends during
 *                                          a handover
 */
#include "collector/cupti/client.h"

#include "collector/cupti/call_ids.h"
#include "collector/cupti/subscription.h"
#include "collector/cupti/handover.h"
#include "collector/file/dictionary.h"

#include <string.h>

#define DOMAINS 8
#define IDS 1024u

static struct {
	atomic_bool in_use;
	_Atomic(cupti_callback) callback;
	void *_Atomic data;
	_Atomic uint64_t on[DOMAINS][IDS / 64];
} subscriber;

bool cupti_client_has_callback(int domain, uint32_t id)
{
	return domain > 0 && domain < DOMAINS && id < IDS &&
	       (atomic_load_explicit(&subscriber.on[domain][id / 64], memory_order_relaxed) >>
			       id % 64 &
		       1);
}

static int set_callback(int domain, uint32_t id, bool on)
{
	int result = CUPTI_OK;

	if (domain <= 0 || domain >= DOMAINS || id >= IDS)
		return CUPTI_INVALID_PARAMETER;
	if (cupti_is_handed_over() || !cupti_owns_callback(domain, id))
		result = cupti_session->library.enable_callback(
			on, cupti_session->subscriber, domain, id);
	if (result != CUPTI_OK)
		return result;
	if (on)
		atomic_fetch_or(&subscriber.on[domain][id / 64], UINT64_C(1) << id % 64);
	else
		atomic_fetch_and(&subscriber.on[domain][id / 64], ~(UINT64_C(1) << id % 64));
	if (!on && domain == CUPTI_RUNTIME)
		call_ids_runtime_unfollowed();
	return CUPTI_OK;
}

static void disable_callbacks(int domain)
{
	for (uint32_t id = 0; id < IDS; id++)
		if (cupti_client_has_callback(domain, id))
			set_callback(domain, id, false);
}

int cupti_client_subscribe(void **handle, cupti_callback callback, void *data)
{
	if (!cupti_runs()) {
		const struct cupti_library *real = cupti_client_library();

		return real && real->subscribe ? real->subscribe(handle, callback, data)
					       : CUPTI_NOT_INITIALIZED;
	}
	if (!handle)
		return CUPTI_INVALID_PARAMETER;
	if (atomic_exchange(&subscriber.in_use, true))
		return CUPTI_OTHER_SUBSCRIBER;
	atomic_store(&subscriber.data, data);
	atomic_store(&subscriber.callback, callback);
	*handle = &subscriber;
	return CUPTI_OK;
}

/* Since 13.2 some functions require this handle (cuptiActivityEnable_v2). They are not shared, and
 * would crash with a handle of ours. CUPTI therefore answers itself, and refuses because we are
 * subscribed. */
static int forward_subscribe_v2(void **handle, cupti_callback callback, void *data, void *more)
{
	const struct cupti_library *real = &cupti_session->library;
	int result = real->subscribe_v2 ? real->subscribe_v2(handle, callback, data, more)
					: CUPTI_NOT_INITIALIZED;

	if (result != CUPTI_OK)
		meta_set("warning.cupti_guest",
			"Another profiler in the program requested CUPTI exclusively (as CUPTI "
			"13.2 and later allow) and was refused; run with PPERF_CUPTI=0, or without "
			"the other profiler.");
	return result;
}

/* `more` has space for the name of an earlier subscriber. It stays unchanged, because the client
 * sees none. */
int cupti_client_subscribe_v2(void **handle, cupti_callback callback, void *data, void *more)
{
	const struct cupti_library *real = cupti_client_library();

	if (!cupti_runs())
		return real && real->subscribe_v2 ? real->subscribe_v2(handle, callback, data, more)
						  : CUPTI_NOT_INITIALIZED;
	if (real->version >= CUPTI_VERSION_13_2)
		return forward_subscribe_v2(handle, callback, data, more);
	return cupti_client_subscribe(handle, callback, data);
}

int cupti_client_unsubscribe(void *handle)
{
	if (handle != &subscriber) {
		const struct cupti_library *real = cupti_client_library();

		return real && real->unsubscribe ? real->unsubscribe(handle)
						 : CUPTI_NOT_INITIALIZED;
	}
	cupti_client_drop_subscriber();
	return CUPTI_OK;
}

void cupti_client_drop_subscriber(void)
{
	for (int domain = 1; domain < DOMAINS && cupti_runs(); domain++)
		disable_callbacks(domain);
	atomic_store(&subscriber.callback, (cupti_callback)0);
	atomic_store(&subscriber.in_use, false);
}

int cupti_client_enable_callback(uint32_t on, void *handle, int domain, uint32_t id)
{
	if (handle != &subscriber || !cupti_runs()) {
		const struct cupti_library *real = cupti_client_library();

		return real && real->enable_callback ? real->enable_callback(on, handle, domain, id)
						     : CUPTI_NOT_INITIALIZED;
	}
	return set_callback(domain, id, on != 0);
}

/* Ids that this release does not have return an error, which is ignored. */
int cupti_client_enable_domain(uint32_t on, void *handle, int domain)
{
	if (handle != &subscriber || !cupti_runs()) {
		const struct cupti_library *real = cupti_client_library();

		return real && real->enable_domain ? real->enable_domain(on, handle, domain)
						   : CUPTI_NOT_INITIALIZED;
	}
	if (domain <= 0 || domain >= DOMAINS)
		return CUPTI_INVALID_PARAMETER;
	if (!on)
		disable_callbacks(domain);
	for (uint32_t id = 1; on && id < IDS; id++)
		set_callback(domain, id, true);
	return CUPTI_OK;
}

int cupti_client_enable_all_domains(uint32_t on, void *handle)
{
	if (handle != &subscriber || !cupti_runs()) {
		const struct cupti_library *real = cupti_client_library();

		return real && real->enable_all_domains ? real->enable_all_domains(on, handle)
							: CUPTI_NOT_INITIALIZED;
	}
	for (int domain = 1; domain < DOMAINS; domain++)
		cupti_client_enable_domain(on, handle, domain);
	return CUPTI_OK;
}

int cupti_client_callback_state(uint32_t *on, void *handle, int domain, uint32_t id)
{
	if (handle != &subscriber || !cupti_runs()) {
		const struct cupti_library *real = cupti_client_library();

		return real && real->callback_state ? real->callback_state(on, handle, domain, id)
						    : CUPTI_NOT_INITIALIZED;
	}
	if (!on || domain <= 0 || domain >= DOMAINS)
		return CUPTI_INVALID_PARAMETER;
	*on = cupti_client_has_callback(domain, id);
	return CUPTI_OK;
}

/* Whether the call's 64 bits are ours. At the end of a call, our own callback has run before and
 * cleared its bits. Bits of ours that are left are of a call that ends during a handover. */
static bool data_is_ours(int domain, uint32_t id, const struct cupti_call *call)
{
	if (domain != CUPTI_DRIVER)
		return false;
	return call->site == CUPTI_ENTER
		       ? !cupti_is_handed_over() && cupti_owns_callback(domain, id)
		       : cupti_session->config->is_own_data(*call->data);
}

void cupti_client_forward_callback(int domain, uint32_t id, const void *what)
{
	cupti_callback callback = atomic_load_explicit(&subscriber.callback, memory_order_relaxed);
	struct cupti_call copy;
	uint64_t bits = 0;

	if (__builtin_expect(!callback, 1) || !cupti_client_has_callback(domain, id))
		return;
	if (data_is_ours(domain, id, what)) {
		memcpy(&copy, what, sizeof copy);
		copy.data = &bits;
		what = &copy;
	}
	callback(atomic_load(&subscriber.data), domain, id, what);
}
