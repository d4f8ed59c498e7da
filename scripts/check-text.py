#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check-text.py [FILE...]: checks the language of the project: no line of the
product is wider than 100 columns, no comment, document, man
page or text that a program prints uses a word that CONTRIBUTING.md retires, no comment of the product names an identifier or a
source file that does not exist, no definition has two comments above it,
and each file of the product begins with the line of its licence. Prints TAP; exit status 1 if something is found. Without
FILE it checks all files of the project, and then itself on samples. It is part of `make lint` and of `make test`."""
import functools
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS = 100

# Retired in comments of the product and in what users read. Words with a current meaning (place as a verb, recording window, CUDA
# stream) cannot be found by a list: they are left to the reader.
RETIRED = r"""told|tells|telling|whoever|nobody|nobody's|somebody|somebody's|given\ back|gives\ back|give\ back|taken\ back|takes\ back
    |pushed\ out|let\ go|lets\ go|row\ of\ open\ ranges|reckon|reckons|reckoned|tally|tallies|spool|guests?|asides|of\ its\ own\ accord
    |so\ many\ of\ them"""
# In comments only: metaphors that texts for users may need in their plain sense.
IN_COMMENTS = r"stands|stood|lies|hears|heard|settles|settled|asks|asked"
# Sentences of users' texts that were replaced by standard wording.
IN_TEXTS = r"stands\ out|at\ the\ end\ stood|asked\ for|(?<=\d\ )sets\b|copies\ and\ sets|nothing\ of\ this\ kind|stood\ at"

COMMENT_OR_STRING = re.compile(r'(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*")|\'(?:\\.|[^\'\\\n])*\'', re.S)
WORDS_OF_COMMENTS = re.compile(r"\b(?:%s|%s)\b" % (RETIRED, IN_COMMENTS), re.I | re.X)
WORDS_OF_TEXTS = re.compile(r"\b(?:%s|%s)\b" % (RETIRED, IN_TEXTS), re.I | re.X)
# Names of others: at::sequence_number::peek, files, identifiers.
NAMES = re.compile(r"`[^`]*`|\w+::\w+(?:::\w+)*|\b\w+_\w+\b|\b\w+\.[ch]\b")

PRODUCT = ("preload/", "collector/", "report/")
# The message of a static assertion is a comment.
ASSERTION = re.compile(r'(?:static_assert|_Static_assert)\s*\([^;]*?,\s*(?P<comment>"[^"]*")\s*\)', re.A)
WORD = re.compile(r"[A-Za-z_]\w*", re.A)
# What a comment names: `word`, word_word, word->word, word().
NAMED = re.compile(r"`(?P<quoted>[A-Za-z_]\w+)`|(?<![\w./-])(?P<name>[A-Za-z_]\w*)(?P<after>->|\(\))?", re.A)
SOURCE_FILE = re.compile(r"(?<![\w.*-])(?:[\w-]+/)*(?P<name>[\w-]+\.(?:c|h|mk|sh))\b", re.A)
# Names of CUDA, CUPTI, NVTX, Python, C++ and the compiler have prefixes of their own.
FOREIGN_NAME = re.compile(r"(?:CU[A-Z]*_|CU[a-z]|cu[A-Z]|cuda[A-Z]|cupti[A-Z]|NVTX|nvtx[A-Z]|_?Py|_Z|__|RTLD_|pthread_|DW_|sm_?\d)\w*", re.A)
# Other names of PyTorch, Python, kernels and mathematics.
FOREIGN_NAMES = set("""create_graph no_grad sequence_number named_modules grad_output output_mask wrap_inline
    cutlass_80_gemm ViTLayer_3 I_x""".split())
FOREIGN_FILES = set("""perf_event.h perf_regs.h cuda.h cupti.h nvToolsExt.h magic.h cuda_occupancy.h""".split())


# A comment directly above the comment of a function: a function was put between the first and its own.
TWO_COMMENTS = re.compile(r"^/\*(?:(?!\*/).)*\*/\n(?=/\*)", re.M | re.S)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def found_in(pattern, text, offset=0, whole=None):
    plain = NAMES.sub(lambda name: " " * len(name[0]), text)
    whole = text if whole is None else whole
    for match in pattern.finditer(plain):
        yield line_of(whole, offset + match.start()), 'uses "%s"' % match[0].replace("\n", " ")


def split_c(text):
    """Returns the code of a C source with its texts, and its comments as (offset, comment)."""
    assertions = {match.start("comment"): match["comment"] for match in ASSERTION.finditer(text)}
    comments = list(assertions.items())
    code, end = [], 0
    for match in COMMENT_OR_STRING.finditer(text):
        if match["comment"]:
            comments.append((match.start(), match[0]))
        if match["comment"] or match.start() in assertions:
            code += [text[end:match.start()], " "]
            end = match.end()
    return "".join(code) + text[end:], comments


class Names:
    """The names of the whole product, and those of each of its C files."""

    def __init__(self):
        self.files = set(project_files())
        self.base_names = {os.path.basename(name) for name in self.files} | FOREIGN_FILES
        # Comments also name modules by their file.
        self.all = {name.split(".")[0] for name in self.base_names}
        self.of_file, self.included, self.commands, constants = {}, {}, set(), set()
        for name in self.files:
            if not name.startswith(PRODUCT) and not name.endswith((".mk", "Makefile")):
                continue
            with open(os.path.join(ROOT, name), encoding="utf-8", errors="replace") as file:
                text = file.read()
            if name.endswith((".c", ".h")):
                text, _ = split_c(text)
                self.of_file[name] = set(WORD.findall(text))
                self.included[name] = re.findall(r'^#include "([^"]+)"', text, re.M)
                if name.startswith("report/cli/"):
                    self.commands.update(re.findall(r'\.name = "(\w+)"', text))
                for body in re.findall(r"\benum\s+\w+\s*\{([^{}]*)\}", text):
                    constants.update(re.findall(r"[A-Z]\w+", body))
            self.all.update(WORD.findall(text))
        # TRACE_STREAM_WAIT is STREAM_WAIT where only constants of its enum are meant.
        self.shortened = {constant[at + 1:] for constant in constants for at, letter in enumerate(constant) if letter == "_"}

    def near(self, name, text):
        """Returns the names in a file, its header or source, and what these include."""
        found, rest = set(), [name[:-2] + ".c", name[:-2] + ".h", *re.findall(r'^#include "([^"]+)"', text, re.M)]
        near = set(WORD.findall(split_c(text)[0])) | self.commands
        while rest:
            other = rest.pop()
            if other in self.of_file and other not in found:
                found.add(other)
                near |= self.of_file[other]
                rest += self.included[other]
        return near

    def has(self, name):
        if name in self.all or name in self.shortened or name in FOREIGN_NAMES or FOREIGN_NAME.fullmatch(name):
            return True
        # trace_put_NAME and trace_put_ (followed by `*`) are groups of names.
        group = re.fullmatch(r"(\w+_)(?:N|NAME)?", name, re.A)
        return bool(group) and any(other.startswith(group[1]) for other in self.all)


@functools.lru_cache(maxsize=None)
def names_of_product():
    return Names()


def check_names(name, text):
    """Finds names in comments of a C file that no code has: (line, sentence)."""
    names = names_of_product()
    near = names.near(name, text)
    own = WORD.findall(split_c(text)[0])
    known = lambda word: word in own or names.has(word)
    for offset, comment in split_c(text)[1]:
        # An example defines functions: COMPARE_BY(by_device, struct device, number), DEFINE_HEAP(ends, ...)
        defined = set(re.findall(r"\b[A-Z_]{4,}\((\w+),", comment))
        if comment.startswith("/*"):
            comment = re.sub(r'"[^"\n]*"', lambda quote: " " * len(quote[0]), comment)
        # `word`, in plain words, is a parameter, a member, a command or a key nearby.
        for match in NAMED.finditer(comment):
            if match["quoted"] and "_" not in match["quoted"]:
                exists = match["quoted"] in near
            else:
                word = match["quoted"] or match["name"]
                is_name = "_" in word.strip("_") or match["after"] or comment[:match.start()].endswith("->")
                exists = not is_name or word in defined or known(word) or SOURCE_FILE.match(comment, match.start())
            if not exists:
                yield line_of(text, offset + match.start()), "names %s, which the code does not have" % match[0]
        for match in SOURCE_FILE.finditer(comment):
            if match["name"] not in names.base_names:
                yield line_of(text, offset + match.start()), "names the file %s, which does not exist" % match[0]


def check_c(text, is_product):
    """Findings of a C source: (line, sentence)."""
    for match in TWO_COMMENTS.finditer(text):
        yield line_of(text, match.end()), "follows another comment without an empty line, so one of them is above the wrong definition"
    for number, line in enumerate(text.split("\n") if is_product else (), 1):
        if number == 1 and not line.startswith("/* SPDX-License-Identifier: MIT"):
            yield number, "is not the line of the licence"
        width = len(line.expandtabs(8))
        if width > COLUMNS:
            yield number, "has %d columns" % width
    for match in COMMENT_OR_STRING.finditer(text) if is_product else ():
        if match["comment"]:
            yield from found_in(WORDS_OF_COMMENTS, match[0], match.start(), text)
        elif match["string"]:
            yield from found_in(WORDS_OF_TEXTS, match[0], match.start(), text)


def check_document(text):
    """Findings of a document or man page. Tables of retired words quote them."""
    if "| retired | use |" in text:
        text = text[:text.index("| retired | use |")]
    # Blocks of code, and names of test cases in italics, are quoted.
    quoted = r"^```.*?^```$|(?<![*\w])\*[a-zA-Z][^*]*\*" if text.startswith("#") else r"(?!)"
    yield from found_in(WORDS_OF_TEXTS, re.sub(quoted, lambda block: re.sub(r"[^\n]", " ", block[0]), text, flags=re.M | re.S))


def findings(name, text):
    if name.endswith((".c", ".h")):
        is_product = name.startswith(PRODUCT)
        return [*check_c(text, is_product), *(check_names(name, text) if is_product else ())]
    if name.endswith(".md") or re.fullmatch(r"doc/.*\.[1-8]", name):
        return check_document(text)
    if name.startswith("scripts/") and name != "scripts/check-text.py":
        return found_in(WORDS_OF_TEXTS, text)
    return ()


def project_files():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.split() if listed.returncode == 0 else [os.path.relpath(os.path.join(folder, name), ROOT)
        for folder, _, files in os.walk(ROOT) for name in files if os.path.basename(folder) != "build"]
    return [n for n in names if not n.startswith(("build/", "tests/fuzz/found/", "tests/torch/")) and os.path.isfile(os.path.join(ROOT, n))]


def check(names):
    count = 0
    for name in names:
        with open(os.path.join(ROOT, name), encoding="utf-8", errors="replace") as file:
            text = file.read()
        for line, sentence in findings(name, text):
            print("# %s:%d: %s" % (name, line, sentence))
            count += 1
    return count


SAMPLES = [
    ("report/a.c", "/* Whoever is told of it. */\n", 2),
    ("report/a.c", "\tint x; /* lies behind the others */\n", 1),
    ("report/a.c", 'const char *text = "memory was given back";\n', 1),
    ("report/a.c", "int x; /* " + "x" * 100 + " */\n", 1),
    ("tests/a.c", "int x; /* nobody reads this */\n", 0),
    ("report/a.c", "int told, is_told; /* `told` is a name, as at::told::nobody and is_told are */\n", 0),
    ("report/a.c", "/* `fallen` and was_renamed: was_lost->here, lost_too() */\nint here;\n", 4),
    ("report/a.c", 'static_assert(1 == 1, "was_renamed takes 14 bits");\n', 1),
    ("report/a.c", "/* Only for was_moved.c. */\n", 1),
    ("report/a.c", '/* `count` of "any words", is_zero(), here->count, cuLaunch_v2 (suggest.h, NO_SUCH) */\n'
        "bool is_zero(struct list *here, int count);\n", 1),
    ("tests/a.c", "/* was_renamed() */\n", 0),
    ("tests/a.c", "/* One. */\n\n/* Two. */\nint two;\n/* Three. */\nint three;\n", 0),
    ("tests/a.c", "/* Returns\n * one. */\n/* Returns two. */\nint two(void);\n", 1),
    ("doc/pperf.1", ".SH NAME\nmemory that nobody gave back\n", 1),
    ("README.md", "# pperf\n\nThe GPU is told what to do.\n", 1),
    ("report/a.c", "int a;\n", 1),
    ("scripts/pperf", "echo 'somebody took the file'\n", 1),
]


def main():
    if sys.argv[1:]:
        return 1 if check(sys.argv[1:]) else 0
    status = check(project_files())
    print("%s 1 - comments, documents and texts use no retired word; comments name what exists; "
        "lines of the product fit in %d columns" % ("not ok" if status else "ok", COLUMNS))
    for number, (name, text, expected) in enumerate(SAMPLES, 2):
        licence = "" if not name.startswith(PRODUCT) or text == "int a;\n" else "/* SPDX-License-Identifier: MIT */\n\n"
        seen = len(list(findings(name, licence + text)))
        status += seen != expected
        print("%s %d - %d of %d findings in %r" % ("ok" if seen == expected else "not ok", number, seen, expected, text[:40]))
    print("1..%d" % (len(SAMPLES) + 1))
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
