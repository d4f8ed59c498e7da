# What is given to others: the installed tree, a tarball, a Debian package, a wheel. PORTABLE=1 (dist and wheel set it, in a
# build folder of its own) makes both files run on every glibc since 2.17, and pperf-report need nothing else.
VERSION := $(shell sed -n 's/^\#define PPERF_VERSION "\(.*\)"/\1/p' report/cli/help.h)
ARCH ?= $(shell uname -m)
STRIP ?= strip
LIBDIR ?= $(PREFIX)/lib
DIST = $(BUILD)/dist
PORTABLE_NAME = pperf-$(VERSION)-$(ARCH)-linux

ifdef PORTABLE
LIB_OBJECTS += $(BUILD)/lib/packaging/old_glibc.o
REPORT_OBJECTS += $(BUILD)/packaging/old_glibc.o $(BUILD)/packaging/old_libm.o
# Before 2.34 these were libraries of their own; later they are there, and empty.
OLD_GLIBC = -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -l:librt.so.1
LIB_LDLIBS = $(OLD_GLIBC)
# What a library that is linked statically needs has to be named here: libtinfo, by ncursesw.
REPORT_LIBS := -Wl,-Bstatic $(filter-out -lm,$(REPORT_LIBS)) -ltinfo -Wl,-Bdynamic -lm $(OLD_GLIBC)
endif

$(BUILD)/packaging/%.o: packaging/%.c
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) -MMD -MP -c -o $@ $<

# FROM:TO under DESTDIR, for install and uninstall alike.
INSTALLED = $(BUILD)/pperf-report:$(PREFIX)/bin/pperf-report scripts/pperf:$(PREFIX)/bin/pperf $(BUILD)/libpperf.so:$(LIBDIR)/libpperf.so \
	$(foreach page,$(wildcard doc/*.[1-8]),$(page):$(PREFIX)/share/man/man$(subst .,,$(suffix $(page)))/$(notdir $(page))) \
	packaging/completion.bash:$(PREFIX)/share/bash-completion/completions/pperf \
	packaging/completion.bash:$(PREFIX)/share/bash-completion/completions/pperf-report \
	packaging/completion.zsh:$(PREFIX)/share/zsh/site-functions/_pperf \
	packaging/completion.fish:$(PREFIX)/share/fish/vendor_completions.d/pperf.fish \
	packaging/completion.fish:$(PREFIX)/share/fish/vendor_completions.d/pperf-report.fish \
	preload/user/pperf.h:$(PREFIX)/include/pperf.h preload/user/pperf.py:$(PREFIX)/share/pperf/python/pperf.py \
	$(foreach module,$(wildcard python/pperf_parts/*.py),$(module):$(PREFIX)/share/pperf/python/pperf_parts/$(notdir $(module))) \
	packaging/magic:$(PREFIX)/share/pperf/magic scripts/doctor.sh:$(PREFIX)/share/pperf/doctor.sh
mode_of = $(if $(filter $(PREFIX)/bin/% %.sh,$(1)),755,644)

install: all
	@$(foreach pair,$(INSTALLED),install -D -m $(call mode_of,$(lastword $(subst :, ,$(pair)))) $(subst :, $(DESTDIR),$(pair)) &&) true
	@[ -n '$(DESTDIR)' ] || [ "$$(id -u)" != 0 ] || ldconfig || echo 'ldconfig failed: LD_PRELOAD=libpperf.so needs the full path'
	@echo 'pperf $(VERSION) is in $(DESTDIR)$(PREFIX)'

uninstall:
	@rm -f $(foreach pair,$(INSTALLED),$(DESTDIR)$(lastword $(subst :, ,$(pair))))
	@rmdir $(DESTDIR)$(PREFIX)/share/pperf/python/pperf_parts $(DESTDIR)$(PREFIX)/share/pperf/python $(DESTDIR)$(PREFIX)/share/pperf 2> /dev/null || true
	@[ -n '$(DESTDIR)' ] || [ "$$(id -u)" != 0 ] || ldconfig || true

# The tree that the tarball and the wheel are made of.
portable:
	@scripts/setup.sh build
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/portable PORTABLE=1 all
	@rm -rf $(DIST)/$(PORTABLE_NAME)
	@$(MAKE) --no-print-directory -s BUILD=$(BUILD)/portable PORTABLE=1 DESTDIR=$(abspath $(DIST)/$(PORTABLE_NAME)) PREFIX= install > /dev/null
	@$(STRIP) --strip-debug $(DIST)/$(PORTABLE_NAME)/bin/pperf-report $(DIST)/$(PORTABLE_NAME)/lib/libpperf.so
	@install -m 644 README.md LICENSE LICENSE-third-party $(DIST)/$(PORTABLE_NAME)

dist: portable
	@packaging/tarball.sh $(DIST) $(PORTABLE_NAME)
wheel: portable
	@$(PYTHON) packaging/wheel.py $(DIST)/$(PORTABLE_NAME) $(VERSION) $(DIST)
deb:
	@scripts/setup.sh build deb
	@$(MAKE) --no-print-directory all
	@packaging/deb.sh $(DIST) $(BUILD) $(VERSION)

#: make install      into PREFIX (/usr/local) under DESTDIR, the library into LIBDIR (PREFIX/lib); make uninstall removes it
#: make dist         a tarball in build/dist that runs on any Linux with glibc 2.17 or later; make wheel: the same for pip
#: make deb          a package for this Debian or Ubuntu, in build/dist
.PHONY: install uninstall portable dist wheel deb
