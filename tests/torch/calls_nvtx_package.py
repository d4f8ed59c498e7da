# SPDX-License-Identifier: MIT
"""calls_nvtx_package.py EXPECTED: the nvtx package: annotations, domains, categories, colours, payloads, start/end, marks. Its colours have no alpha."""
import struct, threading
import nvtx
from expect import event, text


def bits(form, value):
    return struct.pack(form, value).ljust(8, b"\0").hex()


@nvtx.annotate("decorated", color="red")
def decorated():
    event("mark", "in the function", color=0x0000ff)
    nvtx.mark("in the function", color="blue")


for i in range(100):
    event("push", "decorated", color=0xff0000)
    decorated()
    event("pop", "decorated")

event("push", "with a payload", "package", payload_type=2, payload=bits("<q", -3))
with nvtx.annotate("with a payload", domain="package", payload=-3):
    event("push", "real", "package", payload_type=3, payload=bits("<d", 0.5))
    nvtx.push_range("real", domain="package", payload=0.5)
    event("pop", "real", "package")
    nvtx.pop_range(domain="package")
    event("pop", "with a payload", "package")

event("start", "started", "package")
handle = nvtx.start_range("started", domain="package")


def finish():
    event("end", "started", "package")
    nvtx.end_range(handle)


thread = threading.Thread(target=finish)
thread.start()
thread.join()

domain = nvtx.get_domain("direct")
attributes = domain.get_event_attributes("by attributes", color="green", category="loading")
event("push", "by attributes", "direct", color=0x008000)
domain.push_range(attributes)
event("pop", "by attributes", "direct")
domain.pop_range()
