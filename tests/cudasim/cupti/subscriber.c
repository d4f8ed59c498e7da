/*
 * The one subscriber of the simulated CUPTI, and the callbacks it has enabled.
 */
#include "cupti/parts.h"

#include <stdatomic.h>
#include <stdio.h>

enum {
	DOMAINS = 7,
	CBIDS = 1024,
	/* Releases before 12.2 answered a second subscriber with MAX_LIMIT_REACHED. */
	FIRST_WITH_CODE_39 = CUPTI_12_2,
};

/* What a CUpti_SubscriberHandle points to. */
struct CUpti_Subscriber_st {
	atomic_bool taken;
	_Atomic(CUpti_CallbackFunc) callback;
	void *user_data;
	atomic_uchar wanted[DOMAINS][CBIDS];
	char name[64];
};

static struct CUpti_Subscriber_st only;
static _Thread_local int calling;

bool subscriber_wants(CUpti_CallbackDomain domain, uint32_t cbid)
{
	return cbid < CBIDS && only.wanted[domain][cbid];
}

bool subscriber_calling(void)
{
	return calling > 0;
}

void subscriber_call(CUpti_CallbackDomain domain, uint32_t cbid, const void *data)
{
	CUpti_CallbackFunc callback = only.callback;

	if (!callback)
		return;
	calling++;
	callback(only.user_data, domain, cbid, data);
	calling--;
}

void subscriber_state(uint32_t cbid, CUptiResult result, const char *message)
{
	CUpti_StateData data = { .notification = { .result = result, .message = message } };

	if (subscriber_wants(CUPTI_CB_DOMAIN_STATE, cbid))
		subscriber_call(CUPTI_CB_DOMAIN_STATE, cbid, &data);
}

void subscriber_clear(void)
{
	only.callback = (CUpti_CallbackFunc)0;
	for (int domain = 0; domain < DOMAINS; domain++)
		for (int cbid = 0; cbid < CBIDS; cbid++)
			only.wanted[domain][cbid] = 0;
	only.taken = false;
}

/* How many ids a domain has in this version, 0: no such domain. */
static uint32_t domain_size(CUpti_CallbackDomain domain)
{
	uint32_t version = switches()->version;

	switch (domain) {
	case CUPTI_CB_DOMAIN_DRIVER_API:
		return version >= CUPTI_13_0 ? 807 : 782;
	case CUPTI_CB_DOMAIN_RUNTIME_API:
		return version >= CUPTI_13_0 ? 523 : 487;
	case CUPTI_CB_DOMAIN_RESOURCE:
		return version >= CUPTI_13_0 ? 24 : version >= CUPTI_12_2 ? 22 : 21;
	case CUPTI_CB_DOMAIN_SYNCHRONIZE:
		return CUPTI_CBID_SYNCHRONIZE_SIZE;
	case CUPTI_CB_DOMAIN_NVTX:
		return 64;
	case CUPTI_CB_DOMAIN_STATE:
		return version >= CUPTI_12_2 ? CUPTI_CBID_STATE_SIZE : 0;
	default:
		return 0;
	}
}

bool callback_exists(CUpti_CallbackDomain domain, uint32_t cbid)
{
	return cbid > 0 && cbid < domain_size(domain);
}

static CUptiResult subscribe(
	CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback, void *data)
{
	bool free_ = false;

	if (!handle)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!atomic_compare_exchange_strong(&only.taken, &free_, true))
		return switches()->version >= FIRST_WITH_CODE_39
			       ? CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
			       : CUPTI_ERROR_MAX_LIMIT_REACHED;
	only.user_data = data;
	only.callback = callback;
	snprintf(only.name, sizeof only.name, "CUPTI");
	*handle = &only;
	tools_install();
	return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiSubscribe(
	CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback, void *data)
{
	CUptiResult result = entry(__func__);

	return result ? result : subscribe(handle, callback, data);
}

#if SIM_MAJOR >= 13
/* Tells who was first; a refusal stands for another tool. */
static void name_other(const CUpti_SubscriberParams *params)
{
	if (params->oldSubscriberName && params->oldSubscriberSize)
		snprintf(params->oldSubscriberName, params->oldSubscriberSize, "%s",
			switches()->refuse ? "Nsight Systems" : only.name);
}

SIM_EXPORT CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *handle,
	CUpti_CallbackFunc callback, void *data, CUpti_SubscriberParams *params)
{
	CUptiResult result = entry(__func__);

	if (params && params->structSize < CUpti_SubscriberParams_STRUCT_SIZE)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!result)
		result = subscribe(handle, callback, data);
	if (!params)
		return result;
	if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
		name_other(params);
	else if (!result && params->subscriberName)
		snprintf(only.name, sizeof only.name, "CUPTI for %.*s",
			CUPTI_SUBSCRIBER_NAME_MAX_LEN, params->subscriberName);
	return result;
}
#endif

SIM_EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
	CUptiResult result = entry(__func__);

	if (handle != &only || !only.taken)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (result)
		return result;
	subscriber_clear();
	correlation_restart();
	return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle handle,
	CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	CUptiResult result = entry(__func__);

	if (handle != &only || !only.taken || !callback_exists(domain, cbid))
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!result)
		only.wanted[domain][cbid] = enable != 0;
	return result;
}

static CUptiResult enable_domain(uint32_t enable, CUpti_CallbackDomain domain)
{
	if (!domain_size(domain))
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (uint32_t cbid = 1; cbid < domain_size(domain); cbid++)
		only.wanted[domain][cbid] = enable != 0;
	return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiEnableDomain(
	uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain)
{
	CUptiResult result = entry(__func__);

	if (handle != &only || !only.taken)
		return CUPTI_ERROR_INVALID_PARAMETER;
	return result ? result : enable_domain(enable, domain);
}

SIM_EXPORT CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle handle)
{
	CUptiResult result = entry(__func__);

	if (handle != &only || !only.taken)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (int domain = 1; !result && domain < DOMAINS; domain++)
		if (domain_size((CUpti_CallbackDomain)domain))
			result = enable_domain(enable, (CUpti_CallbackDomain)domain);
	return result;
}

SIM_EXPORT CUptiResult cuptiGetCallbackState(uint32_t *enable, CUpti_SubscriberHandle handle,
	CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	CUptiResult result = entry(__func__);

	if (!enable || handle != &only || !only.taken || !callback_exists(domain, cbid))
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!result)
		*enable = only.wanted[domain][cbid];
	return result;
}
