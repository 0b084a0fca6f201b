/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include "tests/lib/refuse_keys.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int refuse_keys(int error, bool all)
{
	const uint32_t refuse = SECCOMP_RET_ERRNO | (uint32_t)error;
	const uint32_t others = all ? refuse : SECCOMP_RET_ALLOW;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_keyctl, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_add_key, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_request_key, 2, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, refuse),
		BPF_STMT(BPF_RET | BPF_K, others),
	};
	struct sock_fprog program = {.len = 7, .filter = code};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
