/* SPDX-License-Identifier: MIT
 *
 * Finds hangs by the calls of NCCL. The requests of all ranks are sorted by communicator, so that
 * those of one communicator are side by side: first the sends and receives of each two ranks, then
 * the collectives of each rank.
 */
#include "report/analysis/ranks/rank_hang.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/text_builder.h"
#include <stdlib.h>

struct rank_request {
	const struct communicator_request *request;
	uint32_t rank; /* index */
};

/* The requests of one communicator. */
struct requests_of_key {
	const struct ranks *ranks;
	struct rank_hangs *hangs;
	const struct rank_request *pairs, *members; /* members: a rank each, its collectives */
	size_t pair_count, member_count;
};

static int by_key(const void *a, const void *b)
{
	const struct rank_request *left = a, *right = b;
	const struct communicator_request *x = left->request, *y = right->request;

	return x->key != y->key     ? COMPARE(x->key, y->key)
	       : x->from != y->from ? COMPARE(x->from, y->from)
	       : x->to != y->to     ? COMPARE(x->to, y->to)
				    : COMPARE(left->rank, right->rank);
}

/* Whether it is known how often the rank called. Records that are lost are not known to be calls of
 * one kind or the other. */
static bool is_judged(const struct ranks *ranks, const struct rank_request *one)
{
	const struct rank_input *input = ranks->all[one->rank].input;
	const bool is_pair = one->request->from != UINT32_MAX;

	return input->status == RANK_INPUT_OK &&
	       (!input->lacks_events || !(is_pair || one->request->pairs));
}

static bool is_running(const struct ranks *ranks, uint32_t rank)
{
	return !ranks->all[rank].input->ended;
}

/* Adds the key, and before it the name that the program gave the communicator. */
static void add_communicator_name(struct text_builder *text, const struct requests_of_key *key)
{
	const struct communicator_request *first = key->members[0].request;

	if (first->name)
		text_add(text, "%s (", first->name);
	text_add(text, "NCCL %016llx%s", (unsigned long long)first->key, first->name ? ")" : "");
}

static struct rank_hang *add_key_hang(const struct requests_of_key *key,
	const struct communicator_request *request, uint64_t number)
{
	struct text_builder name = { .text = NULL };
	struct rank_hang *hang;

	add_communicator_name(&name, key);
	hang = rank_hangs_add(
		key->hangs, (struct trace_text){ name.text, (uint32_t)name.used, true }, number);
	free(name.text);
	hang->operation = nccl_operation_name(request->operation);
	hang->from = request->from;
	hang->to = request->to;
	return hang;
}

/* ---- collectives ---- */

static void add_members(const struct requests_of_key *key, struct rank_hang *hang, uint64_t lowest)
{
	for (size_t i = 0; i < key->member_count; i++) {
		const struct rank_request *one = &key->members[i];

		if (!is_judged(key->ranks, one))
			continue;
		if (one->request->count > lowest)
			rank_hang_add_waiting(key->hangs, hang, one->rank);
		else
			rank_hang_add_absent(hang, key->ranks, one->rank);
	}
}

/* Adds a hang in a collective that some members requested, and others did not. */
static void examine_collectives(const struct requests_of_key *key)
{
	const struct rank_request *furthest = NULL;
	uint64_t lowest = UINT64_MAX;
	bool running = false;

	for (size_t i = 0; i < key->member_count; i++) {
		const struct rank_request *one = &key->members[i];

		if (!is_judged(key->ranks, one))
			continue;
		lowest = min_u64(lowest, one->request->count);
		if (!furthest || one->request->count > furthest->request->count) {
			furthest = one;
			running = false;
		}
		running |= one->request->count == furthest->request->count &&
			   is_running(key->ranks, one->rank);
	}
	if (furthest && running && lowest < furthest->request->count)
		add_members(key, add_key_hang(key, furthest->request, lowest), lowest);
}

/* ---- communicators that are being made ---- */

/* Whether the communicator has all ranks of the job, with the numbers that they have there. */
static bool has_job_numbers(const struct requests_of_key *key)
{
	const struct ranks *ranks = key->ranks;
	const int64_t size = key->members[0].request->ranks;

	if (size != ranks->world_size || size <= ranks->all[ranks->count - 1].number)
		return false;
	for (size_t i = 0; i < key->member_count; i++)
		if (key->ranks->all[key->members[i].rank].number != key->members[i].request->rank)
			return false;
	return !key->ranks->numbered_by_file;
}

static bool is_member(const struct requests_of_key *key, uint32_t rank)
{
	for (size_t i = 0; i < key->member_count; i++)
		if (key->members[i].request->rank == rank)
			return true;
	return false;
}

/* Returns the first process of a rank that did not end, or NULL. */
static const struct rank_input *running_input(const struct ranks *ranks, int64_t number)
{
	for (size_t i = 0; i < ranks->inputs.count; i++) {
		const struct rank_input *input = ranks->inputs.all[i];

		if (input->process.rank == number && !input->ended &&
			(input->status == RANK_INPUT_OK ||
				input->status == RANK_INPUT_NO_COLLECTIVES))
			return input;
	}
	return NULL;
}

static struct absent_rank absent_of_number(const struct ranks *ranks, uint32_t number)
{
	for (uint32_t i = 0; i < ranks->count; i++)
		if (ranks->all[i].number == number)
			return (struct absent_rank){ number, i, ranks->all[i].input };
	return (struct absent_rank){ number, UINT32_MAX, running_input(ranks, number) };
}

/* Adds a hang if ranks wait until others make the communicator too. */
static void examine_making(const struct requests_of_key *key)
{
	const struct communicator_request *first = key->members[0].request;
	struct rank_hang *hang;
	bool waits = false;

	for (size_t i = 0; i < key->member_count; i++)
		waits |= key->members[i].request->is_being_made &&
			 is_running(key->ranks, key->members[i].rank);
	if (!waits || first->ranks <= key->member_count)
		return;
	hang = add_key_hang(key, first, 0);
	for (size_t i = 0; i < key->member_count; i++)
		rank_hang_add_waiting(key->hangs, hang, key->members[i].rank);
	if (!has_job_numbers(key) || first->ranks > 2 * key->ranks->count) {
		hang->unknown_count = first->ranks - key->member_count;
		return;
	}
	for (uint32_t rank = 0; rank < first->ranks; rank++)
		if (!is_member(key, rank))
			*ARRAY_ADD(hang->absent, hang->absent_room,
				hang->absent_count) = absent_of_number(key->ranks, rank);
}

/* ---- sends and receives ---- */

/* Returns the other end of a pair: its request, or with a NULL request its rank. */
static bool find_other_end(const struct requests_of_key *key, const struct rank_request *pair,
	struct rank_request *other)
{
	const struct communicator_request *own = pair->request;
	const uint32_t wanted = own->rank == own->from ? own->to : own->from;

	for (size_t i = 0; i < key->member_count; i++) {
		const struct rank_request *one = &key->members[i];

		if (one->request->rank != wanted)
			continue;
		*other = *one;
		return is_judged(key->ranks, one) && one->rank != pair->rank &&
		       !(key->ranks->all[one->rank].input->requests.has_more_pairs);
	}
	return false;
}

static void examine_pair(const struct requests_of_key *key, const struct rank_request *pair,
	const struct rank_request *behind, uint64_t count)
{
	struct rank_hang *hang;

	if (pair->request->count <= count || !is_running(key->ranks, pair->rank))
		return;
	hang = add_key_hang(key, pair->request, count + 1);
	rank_hang_add_waiting(key->hangs, hang, pair->rank);
	rank_hang_add_absent(hang, key->ranks, behind->rank);
}

static void examine_pairs(const struct requests_of_key *key)
{
	for (size_t i = 0, next; i < key->pair_count; i = next) {
		const struct rank_request *one = &key->pairs[i], *other = one + 1;
		struct rank_request absent;

		for (next = i + 1; next < key->pair_count &&
				   key->pairs[next].request->from == one->request->from &&
				   key->pairs[next].request->to == one->request->to;)
			next++;
		if (one->request->from == one->request->to || next > i + 2 ||
			!is_judged(key->ranks, one))
			continue;
		if (next == i + 1) {
			if (find_other_end(key, one, &absent))
				examine_pair(key, one, &absent, 0);
		} else if (is_judged(key->ranks, other)) {
			examine_pair(key, one, other, other->request->count);
			examine_pair(key, other, one, one->request->count);
		}
	}
}

/* ---- all communicators ---- */

/* Whether a process has several ranks of the communicator. What each of them waits for is not
 * examined. */
static bool has_two_of_one_process(const struct requests_of_key *key)
{
	for (size_t i = 1; i < key->member_count; i++)
		if (key->members[i].rank == key->members[i - 1].rank)
			return true;
	return false;
}

static void examine_key(const struct requests_of_key *key)
{
	if (!key->member_count || has_two_of_one_process(key))
		return;
	examine_collectives(key);
	examine_making(key);
	examine_pairs(key);
}

/* Lists the requests of all ranks, sorted by by_key. The caller frees them. */
static struct rank_request *list_requests(const struct ranks *ranks, size_t *count)
{
	struct rank_request *all = NULL;
	size_t room = 0;

	*count = 0;
	for (uint32_t rank = 0; rank < ranks->count; rank++) {
		const struct communicator_requests *requests = &ranks->all[rank].input->requests;

		for (size_t i = 0; i < requests->count; i++)
			if (requests->all[i].key)
				*ARRAY_ADD(all, room,
					*count) = (struct rank_request){ &requests->all[i], rank };
	}
	if (*count)
		qsort(all, *count, sizeof *all, by_key);
	return all;
}

void rank_hangs_find_by_requests(struct rank_hangs *hangs, const struct ranks *ranks)
{
	size_t count;
	struct rank_request *all = list_requests(ranks, &count);

	for (size_t first = 0, members, next; first < count; first = next) {
		for (next = first;
			next < count && all[next].request->key == all[first].request->key;)
			next++;
		for (members = first; members < next && all[members].request->from != UINT32_MAX;)
			members++;
		examine_key(&(struct requests_of_key){ .ranks = ranks,
			.hangs = hangs,
			.pairs = all + first,
			.pair_count = members - first,
			.members = all + members,
			.member_count = next - members });
	}
	free(all);
}
