/* SPDX-License-Identifier: MIT
 * Reads the Python frames of another thread while it runs, for the sampler.
 *
 * The chain of frames may change while it is read. So the thread's innermost frame and instruction
 * are read once more at the end. If they have changed, the chain is read again. If they change each
 * time, the outer frames that two chains have in common are kept: only the innermost ones move.
 */
#ifndef PPERF_PRELOAD_PYTHON_PEER_FRAMES_H
#define PPERF_PRELOAD_PYTHON_PEER_FRAMES_H

#include "collector/sample/samples.h"
#include "preload/python/layout.h"

/* Frames deeper than this are not read. The sample then has none. */
#define PEER_FRAMES_MAX 2048u

/* Starts to read frames by this layout, which stays valid. Needs no test before, because a wrong
 * address is harmless here and each code object and text is checked by its type. Returns why the
 * frames of other threads cannot be read; NULL: they can. Any thread, while Python is initialised.
 */
const char *peer_frames_prepare(const struct python_layout *layout);

/* Whether peer_frames_prepare() has succeeded. */
bool peer_frames_are_read(void);

/* Reads no more frames: the layout has turned out to be wrong. */
void peer_frames_stop(void);

/* Finds out which of the sampled threads run Python. Called by the sampler's thread. */
void peer_frames_find_threads(void);

/* Adds the Python frames of the sample's thread to the sample. Sets python and flags. Called by the
 * sampler's thread, between stream_enter and stream_leave. */
void peer_frames_read(struct sample *sample);

#endif
