# SPDX-License-Identifier: MIT
"""python_frames.py LIBRARY CASE: what the library reads of this thread's frames, against what Python says. Prints `on`, or why the frames
are not read, and then nothing; an exception where they differ."""
import asyncio, ctypes, gc, signal, sys, threading

LIBRARY, CASE = sys.argv[1:3]
HELD, RELEASED = ctypes.PyDLL(LIBRARY), ctypes.CDLL(LIBRARY)
HELD.frames_start.restype, RELEASED.frames_cost.restype = ctypes.c_char_p, ctypes.c_double
MOST, ROOM = 64, 1 << 17
checked = 0


def told(frame):
    """As the library has it."""
    lines = []
    while frame is not None and len(lines) < MOST:
        code = frame.f_code
        lines.append(b"%d\t%s\t%s\n" % (frame.f_lineno or 0, code.co_filename.encode("utf-8", "surrogateescape"),
                                       getattr(code, "co_qualname", code.co_name).encode("utf-8", "surrogateescape")))
        frame = frame.f_back
    return b"".join(lines)


def check(library=None):
    """The frames from the caller on."""
    global checked
    for each in (library,) if library else (HELD, RELEASED):
        into = ctypes.create_string_buffer(ROOM)
        each.frames_here(into, ROOM)
        read = into.value.split(b"\n")[1:-1]
        expected = told(sys._getframe(1)).split(b"\n")[:-1][:MOST - 1]
        assert read == expected, (sys.version, each is HELD, [(a, b) for a, b in zip(read, expected) if a != b][:3], len(read), len(expected))
    checked += 1


def nested(depth):
    if depth:
        return nested(depth - 1)
    check()


def generator(count):
    for _ in range(count):
        check()
        yield from (check() or i for i in range(2))


class Descriptor:
    def __get__(self, instance, owner):
        check()
        return 1

    def __set_name__(self, owner, name):
        check()


class Meta(type):
    def __new__(meta, *rest):
        check()
        return super().__new__(meta, *rest)


class Made:
    def __init__(self, number):
        if number % 50 == 49:
            check()


def shapes():
    check(), check(
    ), check()
    [check() for _ in range(3)]
    {check(): i for i in range(2)}
    list(generator(3))
    sorted(range(5), key=lambda i: check() or i)
    eval("check()")
    exec("\n\n\ncheck()\ndef inner():\n    class Deep:\n        check()\n\ninner()\n", globals())

    class Body(metaclass=Meta):
        check()
        field = Descriptor()

        @property
        def value(self):
            return [check() for _ in range(2)]

    assert Body().field == 1
    assert Body().value
    for i in range(200): # after some calls the interpreter has a frame of its own between the call and __init__
        Made(i)
    callback = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: check() or 0)
    HELD.frames_call(ctypes.PYFUNCTYPE(ctypes.c_int)(lambda: check() or 0))
    RELEASED.frames_call(callback)
    nested(5)

    class Closure:
        def __enter__(self):
            check()

        def __exit__(self, *exception):
            check()

    try:
        with Closure():
            check()
            raise KeyError
    except KeyError:
        check()
    finally:
        check()
    höhe = compile("\n" * 300 + "check()", "文件-ä-\udcff.py", "exec")
    exec(höhe, {"check": check})
    exec(compile("class 类:\n def é(self): check()\n类().é()", "é", "exec"), {"check": check})


def deep():
    sys.setrecursionlimit(5000)
    nested(1000)
    nested(61)
    nested(62)
    nested(60)


def coroutines():
    async def leaf(n):
        check()
        await asyncio.sleep(0)
        check()
        return n

    async def numbers():
        for i in range(5):
            check()
            yield i

    async def root():
        await asyncio.gather(*(leaf(i) for i in range(10)))
        async for _ in numbers():
            check()
        return [await leaf(i) async for i in numbers()]

    asyncio.run(root())


class Held:
    def __init__(self, other=None):
        self.other = other

    def __del__(self):
        check()


def teardown():
    """Frames that are being taken down, whose locals' ends call us."""
    def local():
        held = Held()
        other = Held(Held())

    def raising():
        held = Held()
        raise ValueError(Held())

    def suspended():
        held = Held()
        yield 1
        yield held

    for _ in range(300):
        local()
        try:
            raising()
        except ValueError:
            check()
        unfinished = suspended()
        next(unfinished)
        del unfinished
        cycle = Held()
        cycle.other = cycle
    gc.collect()


def threads():
    errors = []

    def work(number):
        try:
            for i in range(200):
                try:
                    nested(number)
                    if i % 3 == 0:
                        raise RuntimeError(number)
                except RuntimeError:
                    check()
                list(generator(2))
        except BaseException as error:
            errors.append(error)

    all_of_them = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    [t.start() for t in all_of_them]
    [t.join() for t in all_of_them]
    if errors:
        raise errors[0]


def signals():
    seen = [0]

    def handler(number, frame):
        check()
        seen[0] += 1
        signal.setitimer(signal.ITIMER_REAL, 0.0005 if seen[0] < 200 else 0)

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    while seen[0] < 200:
        shapes()


def reused():
    """Code objects come and go at the same address; what was known of one must not be said of the next."""
    addresses, again = set(), 0
    for i in range(3000):
        source = "\n" * (i % 7) + "def f%d():\n" % (i % 5) + " pass\n" * (i % 11) + " check(RELEASED)\nf%d()\n" % (i % 5)
        code = compile(source, "<made %d>" % (i % 13), "exec")
        again += id(code) in addresses
        addresses.add(id(code))
        exec(code, {"check": check, "RELEASED": RELEASED})
        del code
    assert again > 100, again


def traced():
    """Under a tracer, which makes frames keep lines of their own."""
    sys.settrace(lambda *arguments: None)
    shapes()
    sys.settrace(None)
    sys.setprofile(lambda *arguments: None)
    shapes()
    sys.setprofile(None)


def elsewhere():
    """A thread that Python does not know has no frames."""
    assert RELEASED.frames_of_a_thread_of_c() == 0
    check()


def greenlets():
    from greenlet import getcurrent, greenlet

    def other(depth):
        if depth:
            return other(depth - 1)
        for i in range(50):
            check()
            main.switch(i)
            check()

    main = getcurrent()
    several = [greenlet(other) for _ in range(5)]
    for turn in range(50):
        for number, g in enumerate(several):
            g.switch(number) if turn == 0 else g.switch()
            check()
            list(generator(1))
    Held(Held())


def source():
    """The first frame of the program's own file, once for each code location."""
    into = ctypes.create_string_buffer(ROOM)
    packages = {"RELEASED": RELEASED, "into": into, "ROOM": ROOM}
    exec(compile("def package(node):\n return RELEASED.frames_source(node, into, ROOM)", "/x/site-packages/p/q.py", "exec"), packages)
    package = packages["package"]

    def mine(node):
        return package(node)

    def through_the_library(node):
        return sorted([node], key=lambda n: 0) and list(map(mine, [node]))[0]

    line = mine.__code__.co_firstlineno + 1
    name = "source.<locals>.mine" if sys.version_info >= (3, 11) else "mine"
    assert mine(7) == 1 and into.value.decode() == "%d\t%s\t%s\n" % (line, __file__, name), into.value
    assert mine(7) == 0 and mine(8) == 1 and through_the_library(9) == 1
    assert mine(0) == 0 and mine(1 << 21) == 0
    for number, (file, own) in enumerate([("<string>", 1), ("<stdin>", 1), ("<frozen importlib>", 0), ("<pperf: x>", 0), ("<eval_with_key>.7", 0),
                                          ("/usr/lib/python3/dist-packages/torch/x.py", 0), ("relative.py", 1), (json_file(), 0),
                                          ("/tmp/torchinductor_me/ab/cd.py", 0), ("/home/me/torch_train.py", 1)]):
        names = dict(packages)
        exec(compile("def f(node):\n return RELEASED.frames_source(node, into, ROOM)", file, "exec"), names)
        assert names["f"](100 + number) == 1
        assert into.value.decode().split("\t")[1] == (file if own else __file__), (file, into.value)


def json_file():
    import json
    return json.__file__


def cost():
    def at(depth):
        return at(depth - 1) if depth else min(RELEASED.frames_cost(20000) for _ in range(5))
    few, many = at(5), at(45)
    print("ns a frame %.1f" % ((many - few) / 40))


def wrong():
    """Before anything else: a layout that is wrong somewhere is found out, and nobody crashes."""
    results = [[HELD.frames_trial(field, by) for by in (0, 8, -8, 4, 16, 64)] for field in range(14)]
    known = [row for row in results if row[0] == 0]
    assert results[-1][0] == -1 and len(known) == 13, results
    for field, row in enumerate(known):
        for by in row[1:]:
            assert by == 7 or by == -2 or (field == 5 and sys.version_info[:2] == (3, 11)), (field, row)


if CASE == "wrong" and HELD.frames_trial(0, 0) == 0:
    wrong()
state = HELD.frames_start(b"launch").decode()
if state == "on" and CASE != "wrong":
    globals()[CASE]()
    assert checked or CASE in ("source", "cost"), CASE
print(state)
