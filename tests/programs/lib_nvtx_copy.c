/* SPDX-License-Identifier: MIT
 * A library with an NVTX instance of its own, as every library that includes the headers has.
 */
#include <nvtx3/nvToolsExt.h>

__attribute__((visibility("default"))) int copy_push(const char *name)
{
	return nvtxRangePushA(name);
}

__attribute__((visibility("default"))) int copy_pop(void)
{
	return nvtxRangePop();
}

__attribute__((visibility("default"))) uint64_t copy_start(const char *name)
{
	return nvtxRangeStartA(name);
}

__attribute__((visibility("default"))) int copy_domain_push(const char *domain, const char *name)
{
	nvtxEventAttributes_t attributes = { 0 };

	attributes.version = NVTX_VERSION;
	attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
	attributes.message.ascii = name;
	return nvtxDomainRangePushEx(nvtxDomainCreateA(domain), &attributes);
}

__attribute__((visibility("default"))) int copy_domain_pop(const char *domain)
{
	return nvtxDomainRangePop(nvtxDomainCreateA(domain));
}
