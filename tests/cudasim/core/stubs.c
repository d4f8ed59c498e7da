/* The functions that the simulation does not have; SIM_STUBS names the generated list. */
#include "core/entry.h"
#include SIM_STUBS
