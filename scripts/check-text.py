#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check-text.py [FILE...]: checks the language of the project: no line of the
product is wider than 100 columns, and no comment, document, man
page or text that a program prints uses a word that CONTRIBUTING.md retires. Prints TAP; exit status 1 if something is found. Without
FILE it checks all files of the project, and then itself on samples. It is part of `make lint` and of `make test`."""
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


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def found_in(pattern, text, offset=0, whole=None):
    plain = NAMES.sub(lambda name: " " * len(name[0]), text)
    whole = text if whole is None else whole
    for match in pattern.finditer(plain):
        yield line_of(whole, offset + match.start()), 'uses "%s"' % match[0].replace("\n", " ")


def check_c(text, is_product):
    """Findings of a C source: (line, sentence)."""
    for number, line in enumerate(text.split("\n") if is_product else (), 1):
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
        return check_c(text, name.startswith(("preload/", "collector/", "report/")))
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
    ("report/a.c", "int x; /* `told` is a name, as at::told::nobody and tally_of are */\n", 0),
    ("doc/pperf.1", ".SH NAME\nmemory that nobody gave back\n", 1),
    ("README.md", "# pperf\n\nThe GPU is told what to do.\n", 1),
    ("scripts/pperf", "echo 'somebody took the file'\n", 1),
]


def main():
    if sys.argv[1:]:
        return 1 if check(sys.argv[1:]) else 0
    status = check(project_files())
    print("%s 1 - comments, documents and texts use no retired word; lines of the product fit in %d columns" % ("not ok" if status else "ok", COLUMNS))
    for number, (name, text, expected) in enumerate(SAMPLES, 2):
        seen = len(list(findings(name, text)))
        status += seen != expected
        print("%s %d - %d of %d findings in %r" % ("ok" if seen == expected else "not ok", number, seen, expected, text[:40]))
    print("1..%d" % (len(SAMPLES) + 1))
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
