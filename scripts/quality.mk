# What reads the sources and not the programs.
SOURCES = $(PRELOAD) $(COLLECTOR) $(REPORT)
# Cppcheck's own mistakes: volatile accesses, members of a struct passed on to be filled, a value returned as it was tested,
# a pointer that is NULL only where another argument says so, a text that Python copies.
CPPCHECK_MISTAKEN = missingIncludeSystem selfAssignment ctuuninitvar identicalInnerCondition ctunullpointer \
	returnDanglingLifetime
PRODUCT_FILES = $(shell find preload collector report -name "*.[ch]" | LC_ALL=C sort)
C_FILES = $(shell find preload collector report tests -name "*.[ch]" -not -path "tests/torch/*" | LC_ALL=C sort)

#: make lint         layout, language, clang-tidy and cppcheck over the library and the report
lint:
	@scripts/setup.sh build lint
	@$(MAKE) --no-print-directory -j$$(nproc) lint-run
lint-run: lint-layout lint-text $(SOURCES:%=lint/%) lint-cppcheck
lint-layout:
	@echo clang-format
	@clang-format --dry-run -Werror $(PRODUCT_FILES)
lint-text:
	@echo check-text
	@scripts/check-text.py > $(BUILD)/check-text.log || { cat $(BUILD)/check-text.log; exit 1; }
$(SOURCES:%=lint/%): lint/%:
	@echo clang-tidy $*
	@clang-tidy --quiet $* -- -std=c11 -D_GNU_SOURCE -I. $(NVTX_CFLAGS) 2> /dev/null
lint-cppcheck:
	@echo cppcheck
	@cppcheck --quiet --std=c11 -D_GNU_SOURCE -D__x86_64__ '-DElfW(type)=Elf64_##type' -I. --enable=warning,performance,portability \
		$(CPPCHECK_MISTAKEN:%=--suppress=%) --error-exitcode=1 $(SOURCES)

#: make format       clang-format in place, with .clang-format
format:
	@scripts/setup.sh lint
	clang-format -i $(C_FILES)

.PHONY: lint lint-run lint-layout lint-text lint-cppcheck format $(SOURCES:%=lint/%)
