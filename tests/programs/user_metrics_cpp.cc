/* SPDX-License-Identifier: MIT
 * user_metrics_cpp: uses the classes of pperf.h. A range closes when an exception leaves its scope.
 */
#include "preload/user/pperf.h"

#include <cstdio>
#include <stdexcept>
#include <string>

static void fail(int epoch)
{
	pperf::range range("fails");

	if (epoch == 1)
		throw std::runtime_error("epoch 1");
}

int main()
{
	pperf::metric loss("Loss", "");
	static double level = 1;

	pperf::metric("Level", "MB")
		.callback([](void *at) { return *static_cast<double *>(at); }, &level);
	for (int i = 0; i < 3; i++) {
		pperf::range epoch("epoch - n: " + std::to_string(i));
		pperf::range batch("batch", "images");

		batch.count(32);
		batch.count(32);
		loss.push(1.0 / (1 + i));
		level *= 2;
		try {
			fail(i);
		} catch (const std::exception &) {
			pperf::mark("caught");
		}
	}
	std::printf("recorded %d\n", pperf::enabled());
}
