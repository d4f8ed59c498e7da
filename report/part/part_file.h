/* SPDX-License-Identifier: MIT
 *
 * Writes the tables of a part: files of compressed CSV, which appear under their names when all are
 * complete, and then a manifest that names them. The list of tables is the schema pperf.part/1,
 * which doc/parts.md describes.
 */
#ifndef PPERF_REPORT_PART_PART_FILE_H
#define PPERF_REPORT_PART_PART_FILE_H

#include "report/text/json_writer.h"
#include "report/text/output.h"
#include <stdbool.h>
#include <stdint.h>

#define PART_SCHEMA "pperf.part/1"

/* Keys of the report's columns, which are the names of the columns of a table. */
#define PART_PLACE_COLUMNS                                                                 \
	"name:text kind:text depth path:text calls cpu_total_ns cpu_self_ns gpu_total_ns " \
	"gpu_self_ns gpu_calls idle_ns min_ns max_ns bytes alloc_bytes free_bytes "        \
	"tensor_alloc_bytes tensor_free_bytes reserved_peak_bytes allocated_peak_bytes"
#define PART_STEP_COLUMNS                                                               \
	"step step_kind:text state:text outlier:text start_ns duration_ns step_gpu_ns " \
	"cpu_self_ns gpu_total_ns busy_ns idle_ns gaps gap_max_ns kernels gpu_calls "   \
	"allocated_peak_bytes allocated_end_bytes reserved_peak_bytes reserved_end_bytes"
#define PART_FINDING_COLUMNS                                                               \
	"name:text kind:text finding:text evidence:text path:text impact_ns impact_bytes " \
	"gain_ns bound:text count confidence:text next:text"

/* name, columns after `trace` and `rank`. A column is a 64-bit integer, or has :text or :flag. */
#define PART_TABLES(X)                                                                            \
	X(PROCESSES, processes,                                                                   \
		"run_id pid host:text file:text command:text status:text why:text ended:flag "    \
		"complete:flag simulated:flag has_gpu:flag ranges:flag waits_in_call:flag bytes " \
		"content started_unix_ns wall_ns cpu_self_ns gpu_count gpu_total_ns gpu_busy_ns " \
		"gpu_computation_ns gpu_communication_ns gpu_exposed_communication_ns "           \
		"gpu_copy_ns gpu_last_unix_ns reserved_peak_bytes allocated_peak_bytes events "   \
		"lost_events truncated_streams dropped steps pairs untimed world_size "           \
		"lacks_events:flag requests more_pairs:flag torch:text cuda:text "                \
		"device:text")                                                                    \
	X(COMMUNICATORS, communicators,                                                           \
		"comm device stream key name:text named:flag low high first_sequence count "      \
		"requested")                                                                      \
	X(COLLECTIVES, collectives,                                                               \
		"comm seq kind start_ns end_ns requested_ns launched_ns exposed_ns site bytes "   \
		"bus_bytes")                                                                      \
	X(SITES, sites, "site path:text")                                                         \
	X(REQUESTS, requests,                                                                     \
		"key from_rank to_rank ranks own_rank count pairs operation:text making:flag "    \
		"name:text")                                                                      \
	X(ENDS, ends, "thread begin_ns path:text source:text frames:text call:text")              \
	X(PLACES, places, "place key " PART_PLACE_COLUMNS)                                        \
	X(SPREADS, spreads, "key of:text bucket count")                                           \
	X(STEPS, steps, PART_STEP_COLUMNS)                                                        \
	X(FINDINGS, findings, PART_FINDING_COLUMNS)

enum part_table {
#define X(id, name, columns) PART_##id,
	PART_TABLES(X)
#undef X
		PART_TABLE_COUNT
};

/* A table that is written. */
struct part_file {
	struct output *out;
	char *name, *temporary; /* owned */
	uint64_t rows;
	bool has_cell; /* the row has one */
};

/* Creates the folder of a table in `folder`, and begins its file for the task `task`. */
void part_file_open(
	struct part_file *file, const char *folder, enum part_table table, const char *task);
/* Finishes the file under its temporary name. Returns its bytes. */
uint64_t part_file_finish(struct part_file *file);
/* Renames it, and frees its names. */
void part_file_publish(struct part_file *file);

void part_row_begin(struct part_file *file, uint64_t trace, int64_t rank);
void part_row_end(struct part_file *file);
/* Write the next cell of the row. */
void part_integer(struct part_file *file, int64_t value);
void part_known(struct part_file *file, uint64_t value); /* empty if UINT64_MAX */
void part_flag(struct part_file *file, bool value);
void part_text(struct part_file *file, const char *bytes, size_t length);
void part_string(struct part_file *file, const char *text); /* NULL: empty */
/* Begins a cell that the caller writes to file->out. */
void part_cell(struct part_file *file);

/* Writes the columns of a table as an array of [name, SQL type]. */
void part_put_columns(struct json_writer *json, enum part_table table);
const char *part_table_name(enum part_table table);

/* Creates a folder and the folders above it. Ends the program if that fails. */
void part_make_folder(const char *path);

#endif
