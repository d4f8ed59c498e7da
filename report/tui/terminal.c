/* SPDX-License-Identifier: MIT */
#include "report/tui/terminal.h"
#include "report/base/error.h"
#include "report/base/progress.h"
#include <errno.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

static struct termios saved_termios;
/* Restores the terminal. Kept as bytes for a signal handler, which may only call write(2). */
static char restore_sequence[256];
static size_t restore_bytes;
static volatile sig_atomic_t resized, terminal_is_open;
/* signal mask while waiting for a key: SIGWINCH is unblocked only there */
static sigset_t wait_signals;
static bool use_colors;

static void on_resize(int number)
{
	(void)number;
	resized = 1;
}

/* Restores the terminal, then lets the signal end the program as if it had not been caught. */
static void on_fatal_signal(int number)
{
	const int kept = errno;
	size_t done = 0;

	if (terminal_is_open) {
		terminal_is_open = 0;
		while (done < restore_bytes) {
			const ssize_t wrote = write(
				STDOUT_FILENO, restore_sequence + done, restore_bytes - done);

			if (wrote <= 0)
				break;
			done += (size_t)wrote;
		}
		tcsetattr(STDIN_FILENO, TCSANOW, &saved_termios);
	}
	errno = kept;
	raise(number); /* SA_RESETHAND: takes the default action when the handler returns */
}

static const char *terminal_capability(const char *name)
{
	const char *text = tigetstr(name);

	return text == (const char *)-1 ? NULL : text;
}

static bool can_place_text(void)
{
	const char *term = getenv("TERM");
	int error;

	return term && *term && setupterm(term, STDOUT_FILENO, &error) == OK &&
	       terminal_capability("cup");
}

/* Appends a capability of the terminal, without its padding such as `$<5>`. */
static void append_restore_sequence(const char *name)
{
	const char *text = terminal_capability(name);

	while (text && *text && restore_bytes < sizeof restore_sequence) {
		if (text[0] == '$' && text[1] == '<' && strchr(text, '>')) {
			text = strchr(text, '>') + 1;
			continue;
		}
		restore_sequence[restore_bytes++] = *text++;
	}
}

/* Sets a handler. A signal that is ignored or already caught, for example by a sanitizer, is left
 * alone. */
static void catch_signal(int number, void (*handler)(int), int flags)
{
	struct sigaction now, wanted = { .sa_flags = flags };

	wanted.sa_handler = handler;
	sigemptyset(&wanted.sa_mask);
	if (sigaction(number, NULL, &now) == 0 && (now.sa_handler == SIG_DFL || number == SIGWINCH))
		sigaction(number, &wanted, NULL);
}

static void catch_signals(void)
{
	static const int ends[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGSEGV, SIGBUS, SIGABRT,
		SIGFPE, SIGILL };
	sigset_t held;

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		catch_signal(ends[i], on_fatal_signal, (int)SA_RESETHAND);
	catch_signal(SIGWINCH, on_resize, 0);
	sigemptyset(&held);
	sigaddset(&held, SIGWINCH);
	sigprocmask(SIG_BLOCK, &held, &wait_signals);
	sigdelset(&wait_signals, SIGWINCH);
}

static void start_colors(bool color)
{
	use_colors = color && has_colors() && start_color() == OK;
	if (!use_colors)
		return;
	use_default_colors();
	init_pair(1, COLOR_RED, -1);
	init_pair(2, COLOR_YELLOW, -1);
	init_pair(3, COLOR_GREEN, -1);
}

void terminal_open(bool color)
{
	const char *term = getenv("TERM");

	progress_clear();
	progress_allow(false); /* progress output would overwrite the screen */
	tcgetattr(STDIN_FILENO, &saved_termios);
	catch_signals(); /* before ncurses, whose handlers end the program in their own way */
	/* newterm returns NULL where initscr would end the program with its own message. */
	if (!can_place_text() || !newterm(NULL, stdout, stdin))
		fatal(STATUS_USAGE,
			"the terminal type `%s` is unknown, or cannot position text; set TERM to "
			"the right type, such as TERM=vt100",
			term ? term : "");
	append_restore_sequence("sgr0");
	append_restore_sequence("cnorm");
	append_restore_sequence("rmkx");
	append_restore_sequence("rmcup");
	terminal_is_open = 1;
	atexit(terminal_close);
	fatal_restore_terminal = terminal_close;
	start_colors(color);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
}

void terminal_close(void)
{
	if (!terminal_is_open)
		return;
	terminal_is_open = 0;
	endwin();
}

void terminal_size(unsigned *width, unsigned *height)
{
	*width = (unsigned)COLS;
	*height = (unsigned)LINES;
}

static void update_size(void)
{
	struct winsize size;

	resized = 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	clearok(stdscr, TRUE);
}

/* Returns the enum tui_key or the byte for a key of ncurses; 0: no meaning. */
static int translate_key(int key)
{
	static const struct {
		int theirs, ours;
	} keys[] = { { KEY_UP, TUI_UP }, { KEY_DOWN, TUI_DOWN }, { KEY_LEFT, TUI_LEFT },
		{ KEY_RIGHT, TUI_RIGHT }, { KEY_PPAGE, TUI_PAGE_UP }, { KEY_NPAGE, TUI_PAGE_DOWN },
		{ KEY_HOME, TUI_HOME }, { KEY_END, TUI_END }, { KEY_ENTER, TUI_ENTER },
		{ '\r', TUI_ENTER }, { '\n', TUI_ENTER }, { KEY_BACKSPACE, TUI_BACKSPACE },
		{ 127, TUI_BACKSPACE }, { 8, TUI_BACKSPACE }, { 27, TUI_ESCAPE } };

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (keys[i].theirs == key)
			return keys[i].ours;
	return key >= ' ' && key < 256 ? key : 0;
}

/* Waits for a key; `limit` NULL: without end. */
static int wait_for_key(const struct timespec *limit)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	int key, ready;

	for (;;) {
		if (resized) {
			update_size();
			return TERMINAL_RESIZED;
		}
		key = getch();
		if (key == KEY_RESIZE)
			return TERMINAL_RESIZED;
		if (key != ERR)
			return translate_key(key);
		ready = ppoll(&in, 1, limit, &wait_signals);
		if (ready < 0 && errno != EINTR)
			return TERMINAL_CLOSED;
		if (ready == 0)
			return 0;
		if ((in.revents & (POLLHUP | POLLERR | POLLNVAL)) && !(in.revents & POLLIN))
			return TERMINAL_CLOSED;
	}
}

int terminal_key(void)
{
	return wait_for_key(NULL);
}

int terminal_key_within(unsigned ms)
{
	return wait_for_key(&(const struct timespec){ ms / 1000, (long)(ms % 1000) * 1000000 });
}

static attr_t curses_attributes(enum tui_paint paint)
{
	switch (paint) {
	case TUI_BOLD:
		return A_BOLD;
	case TUI_DIM:
		return A_DIM;
	case TUI_BAR:
	case TUI_CURSOR:
		return A_REVERSE;
	case TUI_HOT:
	case TUI_BAD:
		return use_colors ? (attr_t)COLOR_PAIR(1) : A_BOLD;
	case TUI_WARM:
		return use_colors ? (attr_t)COLOR_PAIR(2) : A_NORMAL;
	case TUI_GOOD:
		return use_colors ? (attr_t)COLOR_PAIR(3) : A_BOLD;
	default:
		return A_NORMAL;
	}
}

static void put_on_screen(
	void *context, unsigned y, unsigned x, enum tui_paint paint, const char *text, size_t bytes)
{
	(void)context;
	if (y >= (unsigned)LINES || x >= (unsigned)COLS)
		return;
	attrset((int)curses_attributes(paint));
	mvaddnstr((int)y, (int)x, text, (int)bytes);
}

struct tui_canvas terminal_begin_frame(void)
{
	erase();
	return (struct tui_canvas){ .put = put_on_screen };
}

void terminal_end_frame(void)
{
	attrset(A_NORMAL);
	refresh();
}
