/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP by remote address and job.
 *
 *   remote_index   (job, address) -> slot
 *   remotes        the slots, mapped by user space: job, address and sums
 *   remote_free    free slots: the first queue for addresses, the second for the rows
 *                  "other remotes" of jobs, used when the first is empty
 *
 * A socket remembers its slot and the slot's generation, so that an event needs no look-up in
 * the index. User space frees a slot in this order: it removes it from the index; it adds 1 to
 * the generation, so that sockets look again; it waits far longer than any program runs; then it
 * empties the slot.
 */
#ifndef IOCOM_REMOTES_BPF_H
#define IOCOM_REMOTES_BPF_H

/* User space sets all sizes before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct remote_slot);
} remotes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct remote_key);
	__type(value, u32);
} remote_index SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__type(value, u32);
} remote_free SEC(".maps"), remote_free_other SEC(".maps");

/* How often a slot was taken from the first and the second queue. */
__u64 remotes_taken[2];

/* Takes the peer's address in network order; an IPv4 address mapped into IPv6 becomes IPv4. */
static __always_inline void remote_address(struct sock *sk, struct remote_key *key)
{
	__be32 to[4];

	BPF_CORE_READ_INTO(&to, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32);
	key->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (key->family == AF_INET6 && (to[0] || to[1] || to[2] != __builtin_bswap32(0xffff))) {
		key->address[0] = to[0];
		key->address[1] = to[1];
		key->address[2] = to[2];
		key->address[3] = to[3];
		return;
	}
	key->address[0] =
		key->family == AF_INET6 ? to[3] : BPF_CORE_READ(sk, __sk_common.skc_daddr);
	key->family = AF_INET;
}

/* Returns the slot of KEY plus 1, with a new one from FREE if necessary; 0: there is none. */
static __noinline u32 remote_enter(struct remote_key *key, bool other)
{
	struct remote_slot *slot;
	u32 *found, index;

	found = bpf_map_lookup_elem(&remote_index, key);
	if (found)
		return *found + 1;
	if (other ? bpf_map_pop_elem(&remote_free_other, &index)
		  : bpf_map_pop_elem(&remote_free, &index))
		return 0;
	__sync_fetch_and_add(&remotes_taken[other], 1);
	slot = bpf_map_lookup_elem(&remotes, &index);
	if (!slot)
		return 0;
	__builtin_memcpy(slot->address, key->address, sizeof(slot->address));
	slot->family = key->family;
	slot->cgid = key->cgid;
	if (!bpf_map_update_elem(&remote_index, key, &index, BPF_NOEXIST))
		return index + 1;
	/* Another CPU was faster, or there is no memory. */
	slot->cgid = 0;
	if (other)
		bpf_map_push_elem(&remote_free_other, &index, 0);
	else
		bpf_map_push_elem(&remote_free, &index, 0);
	found = bpf_map_lookup_elem(&remote_index, key);
	return found ? *found + 1 : 0;
}

/*
 * Looks the slot up and stores it in the socket's state; SK is the socket's address. Returns 0 if
 * there is none. Not static: the verifier then checks it once, not for each path to it.
 */
__noinline int remote_find(u64 sk, struct socket_state *socket, u64 cgid)
{
	struct remote_key key = {.cgid = cgid};
	struct remote_slot *slot;
	u32 index;

	if (!socket)
		return 0;
	remote_address((struct sock *)sk, &key);
	index = remote_enter(&key, false);
	if (!index) {
		count_drop(DROP_REMOTES);
		__builtin_memset(&key, 0, sizeof(key));
		key.cgid = cgid;
		index = remote_enter(&key, true);
	}
	if (!index) {
		count_drop(DROP_OTHER_REMOTES);
		return 0;
	}
	index--;
	slot = bpf_map_lookup_elem(&remotes, &index);
	if (!slot)
		return 0;
	socket->remote = (u64)slot->generation << 32 | index;
	return 1;
}

static __always_inline struct remote_slot *remote_of(struct sock *sk, struct socket_state *socket,
						     u64 cgid)
{
	u64 remote = socket->remote, address = 0;
	u32 index = (u32)remote;
	struct remote_slot *slot = bpf_map_lookup_elem(&remotes, &index);

	if (slot && slot->cgid == cgid && slot->generation == remote >> 32)
		return slot;
	/* Reads the address back as a number, because the verifier sees SK as a pointer. */
	bpf_probe_read_kernel(&address, sizeof(address), &sk);
	if (!remote_find(address, socket, cgid))
		return 0;
	index = (u32)socket->remote;
	return bpf_map_lookup_elem(&remotes, &index);
}

#endif
