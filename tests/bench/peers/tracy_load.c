/* SPDX-License-Identifier: MIT
 * The load (load.h) as zones of Tracy's client, each with a place of its own in the source, the
 * cheapest there are.
 */
#include "tests/bench/load.h"

#include <tracy/TracyC.h>

static struct ___tracy_source_location_data places[NAMES];

__attribute__((constructor)) static void describe(void)
{
	for (unsigned i = 0; i < NAMES; i++)
		places[i] = (struct ___tracy_source_location_data){
			.name = names[i], .function = "chain", .file = __FILE__, .line = i + 1
		};
}

static inline void chain(unsigned first)
{
	TracyCZoneCtx zones[DEPTH];

	for (unsigned d = 0; d < DEPTH; d++)
		zones[d] = ___tracy_emit_zone_begin(&places[first + d], 1);
	for (unsigned d = DEPTH; d-- > 0;)
		___tracy_emit_zone_end(zones[d]);
}
