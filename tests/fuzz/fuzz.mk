# Harnesses: tests/fuzz/fuzz_X.c takes an input of its kind. With libFuzzer (clang) they make inputs of their own; with any
# compiler replay_X goes through those that are there, which `make test` does.
FUZZ_CLANG ?= clang
FUZZ_TARGETS = $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SECONDS ?= 60
FUZZ_CORPUS ?= $(BUILD)/fuzz/corpus
# To add nothing to no pointer, and to sort nothing there, is what loops over nothing do. What is undefined ends the
# harness without words: the words would be variables of the report, which each call puts back. The replays have them.
FUZZ_SANITIZE = address,undefined -fno-sanitize=pointer-overflow,nonnull-attribute -fsanitize-trap=undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
FUZZ = BUILD=$(BUILD)/fuzz CC='$(FUZZ_CLANG)' OPT='-O2 -g' CFLAGS='-fsanitize=$(FUZZ_SANITIZE) -fno-pie' LDFLAGS=-no-pie \
	FUZZ_COUNT='-fsanitize=fuzzer-no-link -fno-sanitize-coverage=trace-cmp'

# What a host of many calls in one process stands in for.
FUZZ_WRAPPED = exit malloc calloc realloc aligned_alloc free mmap mremap munmap strdup fopen fdopen tmpfile fclose opendir closedir cache_key_of cache_open
FUZZ_SHARED = $(addprefix $(BUILD)/tests/fuzz/,host.o printed.o mutate.o mutate_json.o mutate_database.o target.o report_main.o python_lines.o)
FUZZ_LINKED = $(BUILD)/tests/libfixtures.a $(CHECK_LIBS) $(REPORT_LIBS) -ldl -lpthread $(addprefix -Wl$(comma)--wrap=,$(FUZZ_WRAPPED))
comma = ,
# The report once more, its variables in sections that can be found.
FUZZ_REPORT = $(patsubst report/%.c,$(BUILD)/tests/fuzz/report/%.o,$(filter-out report/cli/main.c,$(REPORT)))
# What is tried, and nothing of the harness, counts which parts of it are reached. Not what it compares with what: that
# takes half of the time, and changes that know the formats find more.
FUZZ_COUNTED = $(REPORT:%.c=$(BUILD)/%.o) $(addprefix $(BUILD)/tests/fuzz/,report_main.o python_lines.o)
$(FUZZ_COUNTED): override CFLAGS += $(FUZZ_COUNT)

#: make fuzz         libFuzzer over all that reads files, a minute each; FUZZ_SECONDS=n, FUZZ_TARGETS='trace elf'
fuzz:
	@FUZZ_CLANG='$(FUZZ_CLANG)' scripts/setup.sh build test fuzz
	@$(MAKE) --no-print-directory -j$$(nproc) fuzz-build
	@tests/fuzz/run.sh $(BUILD)/fuzz $(FUZZ_CORPUS) $(FUZZ_SECONDS) $(FUZZ_TARGETS)

fuzz-build: ; @$(MAKE) --no-print-directory $(FUZZ) fuzzers
fuzzers: $(FUZZ_TARGETS:%=$(BUILD)/tests/fuzz/fuzz_%) $(BUILD)/tests/fuzz/seeds
replays: $(FUZZ_TARGETS:%=$(BUILD)/tests/fuzz/replay_%) $(BUILD)/tests/fuzz/seeds
suites: replays

$(BUILD)/tests/fuzz/%.o: tests/fuzz/%.c
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/tests/fuzz/python_lines.o: preload/python/line_table.c
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/tests/fuzz/report_main.o: report/cli/main.c
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) -Wno-missing-prototypes -Dmain=report_main -MMD -MP -c -o $@ $<
$(BUILD)/tests/fuzz/report/%.o: $(BUILD)/report/%.o
	@mkdir -p $(@D)
	objcopy --rename-section .data=report_data --rename-section .bss=report_bss $< $@

$(BUILD)/tests/fuzz/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(FUZZ_SHARED) $(FUZZ_REPORT) $(BUILD)/tests/libfixtures.a
	$(CC) $(OPT) $(CFLAGS) -fsanitize=fuzzer $(LDFLAGS) -o $@ $(filter %.o,$^) $(FUZZ_LINKED)
$(BUILD)/tests/fuzz/replay_%: $(BUILD)/tests/fuzz/fuzz_%.o $(FUZZ_SHARED) $(BUILD)/tests/fuzz/replay.o $(BUILD)/tests/libreport.a $(BUILD)/tests/libfixtures.a
	$(CC) $(OPT) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(BUILD)/tests/libreport.a $(FUZZ_LINKED)
$(BUILD)/tests/fuzz/seeds: $(BUILD)/tests/fuzz/seeds.o $(BUILD)/tests/libfixtures.a $(BUILD)/tests/libreport.a
	$(CC) $(OPT) $(CFLAGS) $(LDFLAGS) -o $@ $< $(BUILD)/tests/libfixtures.a $(BUILD)/tests/libreport.a $(CHECK_LIBS) $(REPORT_LIBS) -ldl -lpthread

.PHONY: fuzz fuzz-build fuzzers replays
.SECONDARY: $(FUZZ_TARGETS:%=$(BUILD)/tests/fuzz/fuzz_%.o) $(FUZZ_REPORT)
-include $(wildcard $(BUILD)/tests/fuzz/*.d)
