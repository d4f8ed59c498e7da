/* SPDX-License-Identifier: MIT
 * chdirs FOLDER: goes to FOLDER before its first range.
 */
#include <unistd.h>
#include <nvtx3/nvToolsExt.h>

int main(int count, char **arguments)
{
	if (count > 1 && chdir(arguments[1]))
		return 2;
	nvtxRangePushA("elsewhere");
	nvtxRangePop();
	return 0;
}
