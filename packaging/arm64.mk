# For aarch64: built by Debian's cross compiler, tested under qemu's user mode. The libraries for it are unpacked into
# build/aarch64 (scripts/setup.sh arm64), so that nothing of this machine changes.
ARM64_ROOT = build/aarch64/usr
ARM64_LIBRARIES = $(ARM64_ROOT)/lib/aarch64-linux-gnu
ARM64_BUILD = $(BUILD)/arm64
ARM64_TOOLS = CC=aarch64-linux-gnu-gcc ARCH=aarch64 STRIP=aarch64-linux-gnu-strip
ARM64 = $(ARM64_TOOLS) BUILD=$(ARM64_BUILD) CFLAGS='-isystem $(ARM64_ROOT)/include -isystem $(ARM64_ROOT)/include/aarch64-linux-gnu $(CFLAGS)' \
	LDFLAGS='-L$(ARM64_LIBRARIES) -Wl,-rpath-link,$(ARM64_LIBRARIES) $(LDFLAGS)'
ARM64_SETUP = scripts/setup.sh arm64 && $(MAKE) --no-print-directory -s -j$$(nproc) $(ARM64)

#: make arm64        libpperf.so and pperf-report for aarch64, in build/arm64; dist-arm64: a tarball of them; test-arm64: the suites under qemu
arm64:
	@$(ARM64_SETUP) all
dist-arm64:
	@$(ARM64_SETUP) dist
test-arm64:
	@$(ARM64_SETUP) all $(SUITE_SOURCES:%.c=$(ARM64_BUILD)/%) $(addprefix $(ARM64_BUILD)/tests/programs/,ranges sampled)
	@$(MAKE) --no-print-directory -s all $(BUILD)/tests/programs/ranges
	@$(PYTHON) tests/run.py --build $(BUILD) arm64

# Without anything of another's: what a machine with the compiler alone can check.
arm64-library:
	@mkdir -p $(ARM64_BUILD)-check && touch $(ARM64_BUILD)-check/.checked-library $(ARM64_BUILD)-check/.checked-build
	@$(MAKE) --no-print-directory -s $(ARM64_TOOLS) BUILD=$(ARM64_BUILD)-check OPT='-O1 -Werror' $(ARM64_BUILD)-check/libpperf.so

.PHONY: arm64 dist-arm64 test-arm64 arm64-library
