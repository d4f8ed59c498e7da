# What recording and reading cost, as ratios to the project's own floors, measured in turns on one machine. Exits with 1 if a gate is
# missed. tests/bench_X.c that others bring along print their own lines and exit with 1 if theirs is.
BENCH_OWN = $(patsubst tests/bench_%.c,$(BUILD)/tests/bench_%,$(wildcard tests/bench_*.c))
BENCH_PROGRAMS = $(BUILD)/tests/bench/nvtx_load $(BUILD)/tests/bench/lib_floor.so

#: make bench        costs against the project's floors; exits with 1 if a gate is missed (a quiet machine, some minutes)
bench:
	@scripts/setup.sh build test bench
	@$(MAKE) --no-print-directory -j$$(nproc) bench-run
bench-run: all $(BENCH_PROGRAMS) bench-own
	@$(PYTHON) tests/bench/bench.py $(BUILD)
	@$(PYTHON) tests/bench/import.py $(BUILD)
bench-own: $(BENCH_OWN)

$(BUILD)/tests/bench/%: tests/bench/%.c
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_CFLAGS) -o $@ $< -lpthread
$(BUILD)/tests/bench/lib_%.so: tests/bench/lib_%.c
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_CFLAGS) -fPIC -shared -fno-plt -o $@ $<
$(BUILD)/tests/bench_%: tests/bench_%.c $(addprefix $(BUILD)/tests/lib,fixtures.a report.a pperf.a)
	@mkdir -p $(@D)
	first=$$(grep -q '"report/' $< && echo report || echo pperf); \
	$(CC) $(BASE_CFLAGS) $(NVTX_CFLAGS) $(LDFLAGS) -o $@ $< $(BUILD)/tests/libfixtures.a $(BUILD)/tests/lib$$first.a \
		$(BUILD)/tests/libreport.a $(BUILD)/tests/libpperf.a $(REPORT_LIBS) -ldl -lpthread

.PHONY: bench bench-run bench-own
