/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP connections of gangs' tasks, one by one, so that both ends can be matched:
 *
 *   gangs       cgroups of gangs' parts (user space)
 *   pairs       (socket, cgroup, process) -> both ends and sums
 *   gang_tasks  (cgroup, process) -> its rank, and its bursts of communication
 *
 * A thread notes in its talk whether its cgroup is a gang's, once a reading, so that others pay
 * for one bit.  User space removes an element that was idle for far longer than a program runs.
 * Bytes without an element are the drop `pairs`; they still are in the job's other counters.
 *
 * The rank is read in the process's own environment when it uses a connection for the first time:
 * later reading from outside would miss short processes, and could wait for their memory's lock.
 * What is swapped out is not read; the process's next connections try again, some times.
 */
#ifndef IOCOM_PAIRS_BPF_H
#define IOCOM_PAIRS_BPF_H

FOLD_MAP(pairs, struct pair_key, struct pair_value, PAIRS_MAX);
FOLD_MAP(gang_tasks, struct gang_task_key, struct gang_task_value, PAIRS_MAX);

#define ENVIRON_ROOM 4096
struct environ_room {
	char text[ENVIRON_ROOM];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct environ_room);
} environ_rooms SEC(".maps");

enum pair_what {
	PAIR_SENT = 1,
	PAIR_MESSAGE = 2, /* a receive call was successful; its bytes came before */
	PAIR_INSIDE = 4,
};

static const volatile struct pair_value nothing_paired = {};

/* Returns the decimal number in TEXT, which ends with 0, or -1. */
static __always_inline s64 rank_number(const char *text)
{
	s64 rank = 0;

	if (!text[0])
		return -1;
	for (u32 i = 0; i < 5; i++) {
		if (!text[i])
			return rank < RANK_MAX ? rank : -1;
		if (text[i] < '0' || text[i] > '9')
			return -1;
		rank = rank * 10 + (text[i] - '0');
	}
	return -1;
}

#define WORD(a, b, c, d, e, f, g, h)                                                               \
	((u64)(a) | (u64)(b) << 8 | (u64)(c) << 16 | (u64)(d) << 24 | (u64)(e) << 32 |             \
	 (u64)(f) << 40 | (u64)(g) << 48 | (u64)(h) << 56)

/*
 * Returns the rank that the variable in ROOM tells, plus RANK_MAX times how good a witness it is
 * (0: the best); RANK_NONE: it tells none. Not static: verified once, not in each round of the
 * loop.
 */
#define RANK_NONE (4 * RANK_MAX)
__noinline int rank_look(const struct environ_room *room)
{
	const char *text;
	const u64 *word;
	s64 rank = -1;
	u32 how = 0;

	if (!room)
		return RANK_NONE;
	text = room->text;
	word = (const u64 *)room->text;
	switch (word[0]) {
	case WORD('I', 'O', 'C', 'O', 'M', '_', 'T', 'A'):
		if (text[8] == 'S' && text[9] == 'K' && text[10] == '=')
			rank = rank_number(text + 11);
		break;
	case WORD('P', 'M', 'I', 'X', '_', 'R', 'A', 'N'):
		how = 1;
		if (text[8] == 'K' && text[9] == '=')
			rank = rank_number(text + 10);
		break;
	case WORD('P', 'M', 'I', '_', 'R', 'A', 'N', 'K'):
		how = 2;
		if (text[8] == '=')
			rank = rank_number(text + 9);
		break;
	case WORD('O', 'M', 'P', 'I', '_', 'C', 'O', 'M'):
		how = 3;
		if (word[1] == WORD('M', '_', 'W', 'O', 'R', 'L', 'D', '_') && text[16] == 'R' &&
		    text[17] == 'A' && text[18] == 'N' && text[19] == 'K' && text[20] == '=')
			rank = rank_number(text + 21);
		break;
	}
	return rank < 0 ? RANK_NONE : (int)(how * RANK_MAX + rank);
}

/* Returns the rank that the current process's environment tells; -1: none. Verified once. */
__noinline s64 environ_rank(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct environ_room *room;
	u64 at, end;
	u32 zero = 0, best = RANK_NONE;
	bool whole = true; /* AT is where a variable begins */

	room = bpf_map_lookup_elem(&environ_rooms, &zero);
	if (!room)
		return -1;
	at = BPF_CORE_READ(task, mm, env_start);
	end = BPF_CORE_READ(task, mm, env_end);
	if (end > at + ENVIRON_BYTES)
		end = at + ENVIRON_BYTES;
	for (u32 i = 0; i < ENVIRON_WORDS; i++) {
		long n;

		if (at >= end)
			break;
		n = bpf_probe_read_user_str(room->text, sizeof(room->text), (const void *)at);
		if (n <= 0)
			break;
		if (whole) {
			u32 found = rank_look(room);

			if (found < best)
				best = found;
		}
		if (best < RANK_MAX)
			break;
		whole = n < (long)sizeof(room->text);
		at += whole ? (u64)n : (u64)n - 1;
	}
	return best < RANK_NONE ? best % RANK_MAX : -1;
}

static __always_inline void gang_task_key_of(struct gang_task_key *key, u64 cgid)
{
	struct task_struct *task = bpf_get_current_task_btf();

	key->cgid = cgid;
	key->tgid = task->tgid;
	key->pad = 0;
	key->start = BPF_CORE_READ(task, group_leader, start_boottime);
}

/* The current process uses a connection for the first time. */
static __noinline int gang_task_enter(struct gang_task_key *key)
{
	struct gang_task_value *value = bpf_map_lookup_elem(&gang_tasks, key), fresh = {};
	s64 rank;

	fresh.rank = -1;
	if (!value) {
		if (bpf_map_update_elem(&gang_tasks, key, &fresh, BPF_NOEXIST))
			count_drop(DROP_PAIRS);
		value = bpf_map_lookup_elem(&gang_tasks, key);
		if (!value)
			return 0;
	} else if (value->rank >= 0 || value->rank <= -ENVIRON_TRIES) {
		return 0;
	}
	rank = environ_rank();
	value->rank = rank >= 0 ? rank : value->rank - 1;
	return 0;
}

/* Notes that the process communicates. Threads that do so at once may add a gap twice. */
static __noinline int gang_task_burst(u64 cgid, u64 now)
{
	struct gang_task_key key = {};
	struct gang_task_value *value;
	u64 gap;

	gang_task_key_of(&key, cgid);
	value = bpf_map_lookup_elem(&gang_tasks, &key);
	if (!value)
		return 0;
	gap = now - value->last_ns;
	if (!value->last_ns || gap > BURST_GAP_NS)
		__sync_fetch_and_add(&value->bursts, 1);
	else
		__sync_fetch_and_add(&value->burst_ns, gap);
	value->last_ns = now;
	return 0;
}

/* Reads both ends; an IPv4 address mapped into IPv6 becomes IPv4. */
static __always_inline void pair_ends(struct sock *sk, struct pair_value *value)
{
	__be32 to[4], from[4];

	value->local.port = BPF_CORE_READ(sk, __sk_common.skc_num);
	value->remote.port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	value->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (value->family != AF_INET6) {
		value->remote.address[0] = BPF_CORE_READ(sk, __sk_common.skc_daddr);
		value->local.address[0] = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
		return;
	}
	BPF_CORE_READ_INTO(&to, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32);
	BPF_CORE_READ_INTO(&from, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32);
	if (!to[0] && !to[1] && to[2] == __builtin_bswap32(0xffff)) {
		value->family = AF_INET;
		value->remote.address[0] = to[3];
		value->local.address[0] = from[3];
		return;
	}
	__builtin_memcpy(value->remote.address, to, sizeof(to));
	__builtin_memcpy(value->local.address, from, sizeof(from));
}

static __noinline struct pair_value *pair_enter(u64 sk, struct pair_key *key)
{
	struct pair_value *value;

	if (bpf_map_update_elem(&pairs, key, (const void *)&nothing_paired, BPF_NOEXIST)) {
		value = bpf_map_lookup_elem(&pairs, key);
		if (!value)
			count_drop(DROP_PAIRS);
		return value;
	}
	value = bpf_map_lookup_elem(&pairs, key);
	if (value)
		pair_ends((struct sock *)sk, value);
	return value;
}

/* Counts BYTES of the socket SK, whose cookie is COOKIE. Not static: verified once. */
__noinline int pair_count(u64 sk, u64 cookie, u64 cgid, u64 bytes, u32 what)
{
	struct pair_key key = {};
	struct pair_value *value;
	u64 now;

	key.cookie = cookie;
	key.cgid = cgid;
	key.tgid = bpf_get_current_pid_tgid() >> 32;
	value = bpf_map_lookup_elem(&pairs, &key);
	if (!value) {
		struct gang_task_key process = {};

		gang_task_key_of(&process, cgid);
		gang_task_enter(&process);
		value = pair_enter(sk, &key);
		if (!value)
			return 0;
		value->start = process.start;
	}
	if (what & PAIR_INSIDE)
		value->inside = 1;
	if (what & PAIR_SENT) {
		__sync_fetch_and_add(&value->sent_bytes, bytes);
		__sync_fetch_and_add(&value->sent_messages, 1);
	} else if (what & PAIR_MESSAGE) {
		__sync_fetch_and_add(&value->received_messages, 1);
	} else {
		__sync_fetch_and_add(&value->received_bytes, bytes);
	}
	now = bpf_ktime_get_ns();
	if (now - value->noted_ns > BURST_NOTE_NS) {
		value->noted_ns = now;
		gang_task_burst(cgid, now);
	}
	return 0;
}

static __always_inline void pair_note(struct sock *sk, u64 cgid, u64 bytes, u32 what)
{
	u64 cookie = sk->__sk_common.skc_cookie.counter, address = 0;

	if (!cookie)
		cookie = bpf_get_socket_cookie(sk);
	/* Reads the address back as a number, because the verifier sees SK as a pointer. */
	bpf_probe_read_kernel(&address, sizeof(address), &sk);
	pair_count(address, cookie, cgid, bytes, what);
}

#endif
