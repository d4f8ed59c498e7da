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

static struct termios before;
static char restoring[256]; /* what brings the terminal back, for a signal handler, which may only write(2) */
static size_t restoring_bytes;
static volatile sig_atomic_t resized, is_open;
static sigset_t waiting; /* the signals that are held back only while we wait for a key */
static bool has_colors_wanted;

static void on_resize(int number)
{
	(void)number;
	resized = 1;
}

/* The program ends by the signal, as if nobody had caught it. */
static void on_end(int number)
{
	const int kept = errno;
	size_t done = 0;

	if (is_open) {
		is_open = 0;
		while (done < restoring_bytes) {
			const ssize_t wrote = write(STDOUT_FILENO, restoring + done, restoring_bytes - done);

			if (wrote <= 0)
				break;
			done += (size_t)wrote;
		}
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	}
	errno = kept;
	raise(number); /* SA_RESETHAND: by default this time, once we return */
}

static const char *capability(const char *name)
{
	const char *text = tigetstr(name);

	return text == (const char *)-1 ? NULL : text;
}

static bool can_place_text(void)
{
	const char *term = getenv("TERM");
	int error;

	return term && *term && setupterm(term, STDOUT_FILENO, &error) == OK && capability("cup");
}

/* A capability of the terminal without its padding, `$<5>`, as bytes to be written. */
static void keep_capability(const char *name)
{
	const char *text = capability(name);

	while (text && *text && restoring_bytes < sizeof restoring) {
		if (text[0] == '$' && text[1] == '<' && strchr(text, '>')) {
			text = strchr(text, '>') + 1;
			continue;
		}
		restoring[restoring_bytes++] = *text++;
	}
}

/* Who wants a signal ignored, or catches it already (a sanitizer), goes on doing so. */
static void catch(int number, void (*handler)(int), int flags)
{
	struct sigaction now, wanted = { .sa_flags = flags };

	wanted.sa_handler = handler;
	sigemptyset(&wanted.sa_mask);
	if (sigaction(number, NULL, &now) == 0 && (now.sa_handler == SIG_DFL || number == SIGWINCH))
		sigaction(number, &wanted, NULL);
}

static void catch_all(void)
{
	static const int ends[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };
	sigset_t held;

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		catch(ends[i], on_end, (int)SA_RESETHAND);
	catch(SIGWINCH, on_resize, 0);
	sigemptyset(&held);
	sigaddset(&held, SIGWINCH);
	sigprocmask(SIG_BLOCK, &held, &waiting);
	sigdelset(&waiting, SIGWINCH);
}

static void choose_colors(bool color)
{
	has_colors_wanted = color && has_colors() && start_color() == OK;
	if (!has_colors_wanted)
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
	progress_allow(false); /* the screen is ours from here on */
	tcgetattr(STDIN_FILENO, &before);
	catch_all(); /* before ncurses does, which ends the program in its own way */
	/* newterm says NULL where initscr would end the program with a sentence of its own. */
	if (!can_place_text() || !newterm(NULL, stdout, stdin))
		fatal(STATUS_USAGE,
			"the terminal `%s` is not known here, or cannot place text; set TERM to what it is like, as TERM=vt100",
			term ? term : "");
	keep_capability("sgr0");
	keep_capability("cnorm");
	keep_capability("rmkx");
	keep_capability("rmcup");
	is_open = 1;
	atexit(terminal_close);
	fatal_before = terminal_close;
	choose_colors(color);
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
	if (!is_open)
		return;
	is_open = 0;
	endwin();
}

void terminal_size(unsigned *width, unsigned *height)
{
	*width = (unsigned)COLS;
	*height = (unsigned)LINES;
}

static void take_size(void)
{
	struct winsize size;

	resized = 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	clearok(stdscr, TRUE);
}

/* What a key of ncurses is to us. */
static int key_of(int key)
{
	static const struct {
		int theirs, ours;
	} keys[] = { { KEY_UP, TUI_UP }, { KEY_DOWN, TUI_DOWN }, { KEY_LEFT, TUI_LEFT }, { KEY_RIGHT, TUI_RIGHT },
		{ KEY_PPAGE, TUI_PAGE_UP }, { KEY_NPAGE, TUI_PAGE_DOWN }, { KEY_HOME, TUI_HOME }, { KEY_END, TUI_END },
		{ KEY_ENTER, TUI_ENTER }, { '\r', TUI_ENTER }, { '\n', TUI_ENTER }, { KEY_BACKSPACE, TUI_BACKSPACE },
		{ 127, TUI_BACKSPACE }, { 8, TUI_BACKSPACE }, { 27, TUI_ESCAPE } };

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (keys[i].theirs == key)
			return keys[i].ours;
	return key >= ' ' && key < 256 ? key : 0;
}

int terminal_key(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	int key;

	for (;;) {
		if (resized) {
			take_size();
			return TERMINAL_RESIZED;
		}
		key = getch();
		if (key == KEY_RESIZE)
			return TERMINAL_RESIZED;
		if (key != ERR)
			return key_of(key);
		if (ppoll(&in, 1, NULL, &waiting) < 0 && errno != EINTR)
			return TERMINAL_GONE;
		if ((in.revents & (POLLHUP | POLLERR | POLLNVAL)) && !(in.revents & POLLIN))
			return TERMINAL_GONE;
	}
}

static attr_t attributes(enum tui_paint paint)
{
	switch (paint) {
	case TUI_BOLD:
		return A_BOLD;
	case TUI_DIM:
		return A_DIM;
	case TUI_BAR: case TUI_CURSOR:
		return A_REVERSE;
	case TUI_HOT: case TUI_BAD:
		return has_colors_wanted ? (attr_t)COLOR_PAIR(1) : A_BOLD;
	case TUI_WARM:
		return has_colors_wanted ? (attr_t)COLOR_PAIR(2) : A_NORMAL;
	case TUI_GOOD:
		return has_colors_wanted ? (attr_t)COLOR_PAIR(3) : A_BOLD;
	default:
		return A_NORMAL;
	}
}

static void put(void *context, unsigned y, unsigned x, enum tui_paint paint, const char *text, size_t bytes)
{
	(void)context;
	if (y >= (unsigned)LINES || x >= (unsigned)COLS)
		return;
	attrset((int)attributes(paint));
	mvaddnstr((int)y, (int)x, text, (int)bytes);
}

struct tui_canvas terminal_begin(void)
{
	erase();
	return (struct tui_canvas){ .put = put };
}

void terminal_end(void)
{
	attrset(A_NORMAL);
	refresh();
}
