/* SPDX-License-Identifier: MIT
 *
 * The assembler finds the files from the project's root.
 */
#include "report/page/assets.h"

#define X(name, file)                                                          \
	__asm__(".pushsection .rodata\n"                                       \
		".hidden page_" #name "\n"                                     \
		".global page_" #name "\n"                                     \
		"page_" #name ":\n"                                            \
		".incbin \"report/page/" file "\"\n"                           \
		".hidden page_" #name "_end\n"                                 \
		".global page_" #name "_end\n"                                 \
		"page_" #name "_end:\n"                                        \
		".byte 0\n"                                                    \
		".popsection\n");                                              \
	extern const char page_##name[] __attribute__((visibility("hidden"))); \
	extern const char page_##name##_end[] __attribute__((visibility("hidden")));
PAGE_STYLES(X)
PAGE_SCRIPTS(X)
#undef X

struct asset asset_get(enum page_asset asset)
{
	static const struct {
		const char *file, *begin, *end;
	} assets[PAGE_ASSET_COUNT] = {
#define X(name, file) [PAGE_##name] = { file, page_##name, page_##name##_end },
		PAGE_STYLES(X) PAGE_SCRIPTS(X)
#undef X
	};

	return (struct asset){ .file = assets[asset].file,
		.text = assets[asset].begin,
		.length = (size_t)(assets[asset].end - assets[asset].begin) };
}
