/* SPDX-License-Identifier: MIT
 * calls_v2: NVTX 2, the shared library libnvToolsExt.so.1, as programs built before NVTX 3 use it.
 */
#include <stdint.h>
#include <nvToolsExt.h>

int main(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("version 2");
	nvtxEventAttributes_t attributes = { 0 };

	attributes.version = NVTX_VERSION;
	attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
	attributes.message.ascii = "in a domain";
	for (int i = 0; i < 100; i++) {
		if (nvtxRangePushA("outer") != 0 || nvtxRangePushA("inner") != 1)
			return 1;
		nvtxMarkA("mark");
		if (nvtxRangePop() != 1 || nvtxRangePop() != 0)
			return 2;
		if (nvtxDomainRangePushEx(domain, &attributes) != 0 ||
			nvtxDomainRangePop(domain) != 0)
			return 3;
		nvtxRangeEnd(nvtxRangeStartA("started"));
	}
	return 0;
}
