/* SPDX-License-Identifier: MIT
 * Starts and ends the library. The constructor reads the settings and sets three variables, by
 * which NVTX and CUDA find us. Everything else is deferred until there is something to record.
 */
#include "preload/settings.h"

#include "preload/cuda/traced_call.h"
#include "collector/file/dictionary.h"
#include "collector/process/dynamic_linker.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/process/signal_guard.h"
#include "collector/process/clock.h"
#include "collector/stream/held_memory.h"
#include "collector/stream/slow_step.h"
#include "collector/stream/stream.h"
#include "preload/cuda/cupti_callbacks.h"
#include "preload/nvtx/nvtx.h"
#include "preload/nvtx/chained_tool.h"
#include "preload/nvtx/handles.h"
#include "preload/python/frames.h"
#include "preload/cuda/native_stack.h"
#include "preload/torch/torch.h"
#include "preload/torch/tensor_memory.h"
#include "preload/torch/modules.h"
#include "preload/torch/operators.h"
#include "preload/user/callbacks.h"
#include "preload/user/interface.h"
#include "preload/sampling.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef PPERF_VERSION
#define PPERF_VERSION "0.1.0"
#endif

/* NULL with PPERF_DISABLE: nothing is ever done. */
static struct pperf_settings *settings;

/* ---- the description of the process in its trace ---- */

#define REDACTED "[redacted]" /* PPERF_REDACT: replaces values that may be private */

#define COMMAND_BYTES 16384u
/* Not on the stack, because the program's threads may have little. */
#define SCRATCH_BYTES (2 * COMMAND_BYTES)

static void write_link(const char *key, const char *link, char *scratch)
{
	ssize_t got = readlink(link, scratch, 4095);

	if (got <= 0)
		return;
	scratch[got] = '\0';
	meta_set(key, scratch);
}

static bool needs_quotes(const char *word)
{
	return !*word || strpbrk(word, " \t\n\"'\\$`*?[]{}();&|<>#~!") != NULL;
}

/* Writes one argument as a shell would read it. Returns the number of bytes written. */
static size_t shell_quote(char *to, size_t room, const char *word)
{
	size_t used = 0;
	bool quoted = needs_quotes(word);

	if (quoted && used < room)
		to[used++] = '\'';
	for (; *word && used + 8 < room; word++) {
		if (*word == '\'') {
			memcpy(to + used, "'\\''", 4);
			used += 4;
		} else {
			to[used++] = *word;
		}
	}
	if (quoted && used < room)
		to[used++] = '\'';
	return used;
}

static void write_command_line(char *scratch)
{
	char *raw = scratch, *text = scratch + COMMAND_BYTES;
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd >= 0 ? read(fd, raw, COMMAND_BYTES - 1) : 0;
	size_t used = 0;

	if (got > 0)
		raw[got] = '\0';
	if (got > 0 && settings->redact)
		got = (ssize_t)strlen(raw) + 1;
	for (ssize_t at = 0; at < got && used + 16 < COMMAND_BYTES;
		at += (ssize_t)strlen(raw + at) + 1) {
		if (used)
			text[used++] = ' ';
		used += shell_quote(text + used, COMMAND_BYTES - used - 1, raw + at);
	}
	if (used)
		meta_set("command", text);
	if (fd >= 0)
		close(fd);
}

/* Returns a copy, or NULL if `value` is NULL or empty. */
static const char *copy_string(const char *value)
{
	size_t bytes = value ? strlen(value) + 1 : 1;
	char *copy = bytes > 1 ? fork_kept_alloc(bytes) : NULL;

	if (copy)
		memcpy(copy, value, bytes);
	return copy;
}

static const char setting_names[SETTING_COUNT][24] = {
#define X(variable, fallback) #variable,
	SETTINGS(X)
#undef X
};

/* Keeps the settings for write_settings(). Called in the constructor. */
static void save_settings(void)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const char *value = getenv(setting_names[i]);

		settings->given_values[i] = value && settings->redact && strchr(value, '/')
						    ? REDACTED
						    : copy_string(value);
	}
	settings->rank = copy_string(settings_rank());
	settings->world_size = copy_string(settings_world_size());
	if (!settings->nvtx)
		meta_set("source.nvtx", "off: PPERF_NVTX=0 (0)");
	if (!settings->python)
		meta_set("source.python_stacks", "off: PPERF_PYTHON=0 (0)");
	if (!settings->cupti)
		meta_set("source.cupti", "off: PPERF_CUPTI=0 (0)");
}

/* Called at the first event, because most processes have none. */
static void write_settings(void)
{
	static const struct {
		char key[28], fallback[12];
	} defaults[SETTING_COUNT] = {
#define X(variable, fallback) { "env." #variable, fallback },
		SETTINGS(X)
#undef X
	};

	struct meta all[SETTING_COUNT + 3];

	for (size_t i = 0; i < SETTING_COUNT; i++)
		all[i] = (struct meta){ defaults[i].key, settings->given_values[i]
								 ? settings->given_values[i]
								 : defaults[i].fallback };
	all[SETTING_COUNT] = (struct meta){ "rank", settings->rank };
	all[SETTING_COUNT + 1] = (struct meta){ "distributed.world_size", settings->world_size };
	all[SETTING_COUNT + 2] = (struct meta){ "warning.settings",
		settings->bad_value[0] ? settings->bad_value : NULL };
	meta_set_all(all, SETTING_COUNT + 3);
}

/* Called at the first event. It does not read the environment, because another thread may be
 * changing it. */
static void describe_process(void)
{
	char host[256] = "", *scratch = fork_kept_alloc(SCRATCH_BYTES);

	write_settings();
	gethostname(host, sizeof host - 1);
	meta_set("version.pperf", PPERF_VERSION);
	meta_set("host", settings->redact ? REDACTED : host);
	if (settings->redact)
		meta_set("directory", REDACTED);
	if (!scratch)
		return;
	write_link("exe", "/proc/self/exe", scratch);
	if (!settings->redact)
		write_link("directory", "/proc/self/cwd", scratch);
	write_command_line(scratch);
	fork_kept_free(scratch, SCRATCH_BYTES);
}

/* ---- the start ---- */

/* Returns our own file, as a path that stays valid after a chdir. Returns false if it is not
 * found. */
static bool own_library_path(char path[4096])
{
	Dl_info info;
	char *whole;

	if (!dladdr((void *)&settings, &info) || !info.dli_fname ||
		!(whole = realpath(info.dli_fname, NULL)))
		return false;
	snprintf(path, 4096, "%s", whole);
	free(whole);
	return true;
}

static bool is_this_library(const struct dl_phdr_info *object)
{
	const ElfW(Addr) here = (ElfW(Addr))(uintptr_t)&settings;

	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && here >= object->dlpi_addr + p->p_vaddr &&
			here < object->dlpi_addr + p->p_vaddr + p->p_memsz)
			return true;
	}
	return false;
}

static int copy_build_id(struct dl_phdr_info *object, size_t size, void *into)
{
	(void)size;
	if (!is_this_library(object))
		return 0;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];
		const ElfW(Nhdr) *note = (const void *)(uintptr_t)(object->dlpi_addr + p->p_vaddr);

		if (p->p_type == PT_NOTE && p->p_memsz >= sizeof *note + 4 + 20 &&
			note->n_type == NT_GNU_BUILD_ID && note->n_descsz == 20)
			memcpy(into, (const char *)(note + 1) + ((note->n_namesz + 3) & ~3u), 20);
	}
	return 1;
}

/* Whether the tool would not share NVTX, by its name or by variables of its own. */
static bool tool_refuses_sharing(const char *tool)
{
	return strstr(tool, "ToolsInjection") || getenv("NSYS_PROFILING_SESSION_ID");
}

/* Whether `tool` is pperf, by this path, another path, or as another copy, which may have recorded
 * the parent process. */
static bool is_pperf(const char *tool, const char *self)
{
	const char *slash = strrchr(tool, '/');
	struct stat own, existing;

	if (!strncmp(slash ? slash + 1 : tool, "libpperf", 8))
		return true;
	return !stat(tool, &existing) && !stat(self, &own) && existing.st_ino == own.st_ino &&
	       existing.st_dev == own.st_dev;
}

/* Sets a variable, unless the process has threads. A thread that reads the environment while
 * another changes it may crash. Such a process has loaded us late, by NVTX_INJECTION64_PATH, which
 * is then set already. */
static void set_variable(const char *name, const char *value, bool replace)
{
	/* glibc 2.32 and later; an older one does not have it. */
	const char *single = quiet_dlsym(RTLD_DEFAULT, "__libc_single_threaded");

	if (!single || *single)
		setenv(name, value, replace);
}

/* Sets NVTX_INJECTION64_PATH to this library. Another tool that it names becomes the
 * chained tool. If that tool does not share NVTX, the variable is left unchanged and NVTX is not
 * recorded. */
static void claim_nvtx_injection(const char *self)
{
	const char *named = getenv("NVTX_INJECTION64_PATH");
	bool other = named && *named && !is_pperf(named, self);

	if (!settings->nvtx)
		return;
	if (other && tool_refuses_sharing(named)) {
		settings->nvtx = false;
		meta_set("source.nvtx", "off: NVTX_INJECTION64_PATH names another tool, which does "
					"not share NVTX (0)");
		return;
	}
	settings_export(settings, other ? named : NULL);
	nvtx_chain_set(settings->chained_nvtx);
	set_variable("NVTX_INJECTION64_PATH", self, true);
}

/* Sets CUDA_INJECTION64_PATH to this library if it is unset. If it is set, CUPTI is started before
 * the first CUDA call that is seen. */
static void claim_cuda_injection(const char *self)
{
	const bool wanted = settings->cuda && settings->cupti;
	const char *named;

	if (wanted)
		set_variable("CUDA_INJECTION64_PATH", self, false);
	named = getenv("CUDA_INJECTION64_PATH");
	cupti_callbacks_configure(wanted, getenv("PPERF_CUPTI") ? settings->cupti_library : NULL,
		settings->cupti_hands_over, settings_size(getenv("PPERF_CUPTI_BUFFERS")),
		named && !strcmp(named, self));
	cupti_callbacks_set_graphs(settings->graphs, settings->graph_nodes_max);
}

/* Returns the configuration of PyTorch's allocator. Newer releases read the first of these
 * variables first. */
static const char *allocator_setting(void)
{
	const char *setting = getenv("PYTORCH_ALLOC_CONF");

	return setting ? setting : getenv("PYTORCH_CUDA_ALLOC_CONF");
}

static void fork_prepare_library(void)
{
	sampling_fork_prepare();
	stream_fork_prepare();
}

/* Runs in a child made by fork. Memory of fork_wiped_alloc() is zeroed there already. */
static void fork_child_library(void)
{
	stream_forked();
	schedule_forked();
	nvtx_handles_forked();
	call_forked();
	native_stack_forked();
	torch_modules_forked();
	torch_ops_forked();
	sampling_fork_child();
}

/* Called when a recording window begins or ends. */
static void on_recording_changed(bool recorded)
{
	torch_ops_record(recorded);
	if (recorded)
		torch_memory_write_levels();
}

static void on_step_begins(uint64_t step)
{
	(void)step;
	slow_step_begins(clock_now());
}

/* Finds the steps without leaving any out, to stop the ring after a slow one. */
static void watch_steps(void)
{
	static const struct schedule all = { .active = UINT32_MAX };

	slow_step_configure(settings->keeps_slow);
	schedule_configure(&all, settings->step_marker, NULL);
	schedule_observe_steps(on_step_begins);
}

static void configure_schedule(void)
{
	const struct schedule *plan = &settings->schedule;
	char text[96];

	if (settings->keeps_oom)
		held_memory_stop_at_oom();
	if (settings->keeps_slow)
		watch_steps();
	if (!settings->scheduled)
		return;
	snprintf(text, sizeof text, "skip_first:%u,wait:%u,warmup:%u,active:%u,repeat:%u",
		plan->skip_first, plan->wait, plan->warmup, plan->active, plan->repeat);
	meta_set("schedule", text);
	schedule_configure(plan, settings->step_marker, on_recording_changed);
}

/* Whether the user disabled pperf. Also true if the kernel gave this program privileges, because
 * NVTX may load the library there all the same. */
static bool is_disabled(void)
{
	const char *value = getenv("PPERF_DISABLE");

	return (value && *value && settings_flag(value, true)) || getauxval(AT_SECURE);
}

static void configure_sources(void)
{
	configure_schedule();
	nvtx_configure(settings->nvtx);
	user_configure(settings->python);
	call_configure(settings->cuda, settings->stacks);
	call_set_hooks(&(const struct call_hooks){ .first_call = torch_late_start,
		.device_memory = torch_memory_check_reported,
		.allocation_stream = torch_memory_stream });
	python_frames_configure(settings->python_stacks);
	torch_memory_configure(settings->tensors, allocator_setting());
	torch_modules_configure(settings->python, settings->modules, settings->all_children);
	torch_ops_configure(settings->ops, settings->shapes, settings->all_children);
	torch_configure(settings->python);
}

__attribute__((constructor)) static void start_library(void)
{
	char self[4096];
	int saved = errno;

	if (is_disabled() || !(settings = fork_kept_alloc(sizeof *settings)))
		return;
	settings_read(settings);
	if (own_library_path(self)) {
		dl_iterate_phdr(copy_build_id, settings->trace.build_id);
		stream_configure(&settings->trace);
		dictionary_on_open(describe_process);
		save_settings();
		settings_export(settings, NULL);
		claim_nvtx_injection(self);
		claim_cuda_injection(self);
		set_variable("PPERF_RUN", settings->run, true);
		configure_sources();
		pthread_atfork(fork_prepare_library, sampling_fork_parent, fork_child_library);
		sampling_start(settings);
	}
	errno = saved;
}

/* ---- the end ---- */

/* Whether a line may be printed: on a terminal, or if requested. It never mixes with the program's
 * own output in a file. */
static bool may_print(void)
{
	if (settings->quiet >= 0)
		return !settings->quiet;
	return isatty(STDERR_FILENO);
}

#define LINE_BYTES (4096u + 256)

static void print_open_error(char *line)
{
	const char *location = *trace_output() ? trace_output() : "in a deleted directory";
	int bytes = snprintf(line, LINE_BYTES,
		"pperf: no trace: %s: %s; set PPERF_OUTPUT to another path\n", location,
		strerror(trace_open_error()));

	if (bytes > 0 && write(STDERR_FILENO, line, (size_t)bytes) < 0)
		return;
}

static void print_closing_line(const struct trace_header *header, char *line)
{
	uint64_t lost = 0;
	int bytes;

	for (int i = 0; i < TRACE_LOSS_KINDS; i++)
		lost += header->lost[i];
	bytes = snprintf(line, LINE_BYTES, "pperf: %s, %.1f MB, %llu thread%s, %llu event%s lost\n",
		trace_path(), (double)header->end / 1e6, (unsigned long long)header->streams,
		header->streams == 1 ? "" : "s", (unsigned long long)lost, lost == 1 ? "" : "s");
	if (bytes > 0 && write(STDERR_FILENO, line, (size_t)bytes) < 0)
		return;
}

/* Returns whether this process is the one of `pperf run`, and neither it nor a child of it wrote a
 * trace. The file of a child has the same name, unless that has the child's number in it. */
static bool recorded_nothing(void)
{
	const char *output = trace_output();
	struct stat status;

	return settings->quiet == 0 && settings->launched_pid == getpid() && *output &&
	       !strchr(output, '%') &&
	       (stat(output, &status) || status.st_mtime < settings->started);
}

static void print_nothing_recorded(void)
{
	static const char line[] =
		"pperf: no trace: the program used no CUDA, NVTX or PyTorch before it ended; "
		"`pperf doctor -- COMMAND` checks what can be recorded\n";

	if (write(STDERR_FILENO, line, sizeof line - 1) < 0)
		return;
}

/* Prints the last line of this process. `header`: NULL if there is no trace. */
static void print_last_line(const struct trace_header *header)
{
	/* The thread that ends the program may have a small stack. */
	char *line = fork_kept_alloc(LINE_BYTES);

	if (line && header)
		print_closing_line(header, line);
	else if (line)
		print_open_error(line);
	fork_kept_free(line, LINE_BYTES);
}

__attribute__((destructor)) static void end_library(void)
{
	const struct trace_header *header;
	struct signal_guard guard;

	if (!settings)
		return;
	signal_guard_begin(&guard);
	sampling_end();
	trace_finish_opening();
	header = trace_header();
	if (header) {
		torch_ops_finish();
		user_callbacks_finish();
		stream_end_process();
		trace_end();
	}
	if ((header || trace_open_error()) && may_print())
		print_last_line(header);
	else if (!header && recorded_nothing())
		print_nothing_recorded();
	signal_guard_end(&guard);
}
