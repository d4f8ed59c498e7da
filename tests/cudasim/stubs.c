/* The functions that the simulation does not have; SIM_STUBS names the generated list. */
#include "entry.h"
#include SIM_STUBS
