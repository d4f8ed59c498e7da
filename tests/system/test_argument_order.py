#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No argument of a call may read a variable that a call in another argument of it may change. The
compiler chooses the order of evaluation: GCC for x86-64 begins with the last argument, clang and
GCC for aarch64 with the first."""
import re
from harness import *


def without_comments(text):
    lines = lambda match: "\n" * match.group(0).count("\n")
    text = re.sub(r"/\*.*?\*/", lines, text, flags=re.S)
    return re.sub(r'"(\\.|[^"\\\n])*"|\'(\\.|[^\'\\\n])*\'', '""', text)


def calls(text):
    """(name, arguments, line) of each call. A name in capitals is a macro, whose parts need not be
    arguments."""
    for match in re.finditer(r"\b(?!if\b|while\b|for\b|switch\b|return\b|sizeof\b)([A-Za-z]\w*[a-z]\w*)\s*\(", text):
        depth, begin, arguments = 0, match.end(), []
        for at in range(match.end() - 1, min(len(text), match.end() + 2000)):
            depth += (text[at] in "([{") - (text[at] in ")]}")
            if depth == 0 or (depth == 1 and text[at] == ","):
                arguments.append(text[begin:at])
                begin = at + 1
            if depth == 0:
                yield match.group(1), arguments, text.count("\n", 0, match.start()) + 1
                break


def changed_and_read(text):
    for name, arguments, line in calls(text):
        for one in arguments:
            given = ",".join(re.findall(r"\w\s*\(([^()]*)", one))
            for variable in re.findall(r"(?:^|,)\s*&\s*([A-Za-z_](?:\w|\.|->)*)\s*(?=,|$)", given):
                read = re.compile(r"(?<![\w.>&])" + re.escape(variable) + r"(?!\w|\s*\()")
                if any(read.search(re.sub(r"sizeof\s*\(?\s*\w+|&\s*" + re.escape(variable), "", other)) for other in arguments if other is not one):
                    yield line, name, variable


@case
def no_argument_depends_on_the_order_of_arguments(folder):
    found = ["%s:%d: %s: %s" % (path.relative_to(ROOT), *what) for part in ("report", "collector", "preload") for path in sorted((ROOT / part).glob("*.c"))
             for what in changed_and_read(without_comments(path.read_text()))]
    assert not found, "\n".join(found)


@case
def such_a_call_is_found(folder):
    bad = "size_t width = visible_width(sheet->name, model->kind->name(model, item, false, &sheet->name, &sheet->room)) + 2;"
    assert list(changed_and_read(bad)) == [(1, "visible_width", "sheet->name")]
    assert not list(changed_and_read("bytes = named(model, &sheet->name); width(sheet->name, bytes); put(&at, sizeof at, first(&at)); FIGURE(at, of(&at));"))


main()
