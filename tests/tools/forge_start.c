/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * forge_start HOW RUN_DIR NODE UID MARK [FILE]: asks the agent of RUN_DIR for a place at
 * NODE as UID does, and starts `touch MARK` there, but with something forged.  HOW:
 *
 *   none                 nothing: this one must run
 *   argv env cwd executable umask limits hard_limits closed class grace
 *                        changed after the credential was made
 *   job node nonce       likewise; "node" goes to NODE all the same
 *   swap                 the credential of one lease with the job of another
 *   type hash            a credential that binds another purpose, another hash
 *   uid                  the credential of another user (daemon)
 *   none-at-all garbage changed key
 *                        no credential; nonsense; one byte changed; sealed with the munged
 *                        of $FORGE_OTHER_MUNGE
 *   expired              a credential that lived one second, two seconds later
 *   stale                true in all, but the lease is over
 *   hoard                (MARK is a number) so many places are asked for and not used
 *   again                a start that was refused, then the true one with its credential
 *   line                 the place is asked for with a directory that tries to write the log
 *   local                the start goes to the agent's own socket, as daemon
 *   capture              as none; the start message is kept in FILE, with the key of its stream
 *   send                 (RUN_DIR is a port) sends FILE as it is, in a stream with that key to the
 *                        node NODE
 *   clear                as none, but over the network in clear, as older clients did
 *   stranger             as none, but with another key of the stream
 *
 * Prints "started, exit KIND VALUE" or "refused: SENTENCE"; 0 when it ran, 1 when it was
 * refused, 2 when this program could not do it.  Needs root.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <munge.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "balancer/placement_request.h"
#include "balancer/client.h"
#include "user/frame.h"
#include "agent/guest/jobs.h"
#include "balancer/listing.h"
#include "user/pack.h"
#include "balancer/run/run.h"
#include "tests/lib/sealed.h"

#define OTHER_UID 1 /* daemon: every machine has one */

struct start {
	const char *how, *run_dir, *node;
	uid_t uid;
	char *mark;
	const char *file;
	char *munge; /* socket of the agent's munged */
	/* Where the job's stream goes, with its key, and what the handshake names. */
	struct run_target target;
	struct stream_hello hello;
};

__attribute__((noreturn)) static void cannot(const char *what, const char *why)
{
	fprintf(stderr, "forge_start: %s: %s\n", what, why);
	exit(2);
}

/* Sets the identity that the kernel reports to munged and to the agent's socket. */
static void become(uid_t uid)
{
	if (seteuid(0) || setegid((gid_t)uid) || seteuid(uid))
		cannot("seteuid", strerror(errno));
}

/* Asks for a lease of NODE for the user, and makes the job as the user would send it. */
static void ask_lease(struct start *s, struct spec *spec)
{
	/* A directory that would end the log's line, add a line and clear a screen. */
	static const char line[] = "/nowhere\n2038-01-19T03:14:07.000Z iocomd: all is well\x1b[2J";
	char *command[] = {(char *)"/usr/bin/touch", s->mark, NULL};
	struct iocom_err err = {0};
	struct placement_request ask;
	struct placement answer;

	placement_request_init(&ask);
	if (placement_request_node(&ask, s->node, &err))
		cannot("ask", err.text);
	ask.run_dir = s->run_dir;
	become(s->uid);
	if (placement_request_ask(&ask, true, strcmp(s->how, "line") ? "/" : line, command[0],
				  command, &answer, &err)) {
		printf("refused: %s\n", err.text);
		exit(1);
	}
	if (run_spec_fill(spec, command, "/", command[0], "none", &err))
		cannot("spec", err.text);
	snprintf(spec->job, sizeof(spec->job), "%s", answer.job);
	snprintf(spec->node, sizeof(spec->node), "%s", answer.node);
	snprintf(spec->nonce, sizeof(spec->nonce), "%s", answer.nonce);
	strcpy(spec->class_name, "touch");
	spec->grace_ms = 1000;
	s->target = (struct run_target){.address = *answer.address ? "127.0.0.1" : "",
					.port = (unsigned)answer.port};
	if (run_target_key(&s->target, answer.key, &err))
		cannot("key", err.text);
	s->target.key[0] ^= !strcmp(s->how, "stranger");
	stream_hello_fill(&s->hello, STREAM_KIND_START, answer.job, answer.node, "");
	free(s->munge);
	s->munge = strdup(answer.munge_socket);
	placement_fini(&answer);
	become(0);
}

/* --- credentials ------------------------------------------------------------- */

static char *seal_as(const struct start *s, uid_t uid, const struct spec *spec, const char *munge)
{
	struct iocom_err err = {0};
	char *credential = NULL;
	size_t length;
	void *packed;

	become(uid);
	if (spec_pack(spec, &packed, &length, &err) ||
	    spec_seal(spec, packed, length, munge ? munge : s->munge, &credential, &err))
		cannot("seal", err.text);
	become(0);
	free(packed);
	return credential;
}

/* A credential that binds a start, but for another purpose or with another hash. */
static char *seal_other(const struct start *s, const struct spec *spec, int ttl)
{
	munge_ctx_t ctx = munge_ctx_create();
	uint8_t hash[SPEC_HASH_BYTES];
	struct iocom_err err = {0};
	char *credential = NULL;
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	size_t length;
	void *packed;

	if (spec_pack(spec, &packed, &length, &err))
		cannot("pack", err.text);
	spec_hash(packed, length, hash);
	hash[7] ^= !strcmp(s->how, "hash");
	free(packed);
	pack_begin(&pk, &buffer, 5);
	pack_str(&pk, "type", strcmp(s->how, "type") ? "start" : "attach");
	pack_str(&pk, "job", spec->job);
	pack_str(&pk, "node", spec->node);
	pack_str(&pk, "nonce", spec->nonce);
	pack_bin(&pk, "hash", hash, sizeof(hash));
	become(s->uid);
	munge_ctx_set(ctx, MUNGE_OPT_SOCKET, s->munge);
	munge_ctx_set(ctx, MUNGE_OPT_TTL, ttl);
	munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, (uid_t)0);
	if (munge_encode(&credential, ctx, buffer.data, (int)buffer.size) != EMUNGE_SUCCESS)
		cannot("munge", munge_ctx_strerror(ctx));
	become(0);
	munge_ctx_destroy(ctx);
	msgpack_sbuffer_destroy(&buffer);
	return credential;
}

/* Changes one byte in the middle of the text, within its alphabet. */
static char *change_one(char *credential)
{
	char *at = credential + strlen(credential) / 2;

	*at = *at == 'A' ? 'B' : 'A';
	return credential;
}

static char *make_credential(const struct start *s, const struct spec *spec)
{
	const char *how = s->how;

	if (!strcmp(how, "none-at-all"))
		return NULL;
	if (!strcmp(how, "garbage"))
		return strdup("MUNGE:AwQDAAAAAAAA:");
	if (!strcmp(how, "uid"))
		return seal_as(s, OTHER_UID, spec, NULL);
	if (!strcmp(how, "key"))
		return seal_as(s, s->uid, spec, getenv("FORGE_OTHER_MUNGE"));
	if (!strcmp(how, "type") || !strcmp(how, "hash"))
		return seal_other(s, spec, SPEC_CREDENTIAL_TTL_S);
	if (!strcmp(how, "expired"))
		return seal_other(s, spec, 1);
	if (!strcmp(how, "changed"))
		return change_one(seal_as(s, s->uid, spec, NULL));
	return seal_as(s, s->uid, spec, NULL);
}

/* --- what is changed after the credential was made ----------------------------------- */

static void replace(char **field, const char *value)
{
	free(*field);
	*field = strdup(value);
}

static bool tamper(const char *how, struct spec *spec)
{
	static char preload[] = "LD_PRELOAD=/tmp/x.so", *env[] = {preload, NULL};

	if (!strcmp(how, "argv"))
		replace(&spec->argv[0], "/usr/bin/TOUCH");
	else if (!strcmp(how, "env"))
		spec->env = env;
	else if (!strcmp(how, "cwd"))
		replace(&spec->cwd, "/tmp");
	else if (!strcmp(how, "executable"))
		replace(&spec->executable, "/bin/touch");
	else if (!strcmp(how, "umask"))
		spec->umask ^= 0777;
	else if (!strcmp(how, "limits"))
		spec->limits[0].soft ^= 4096;
	else if (!strcmp(how, "hard_limits"))
		spec->limits[RLIMIT_NOFILE].hard++; /* never infinite */
	else if (!strcmp(how, "closed"))
		spec->closed ^= 1;
	else if (!strcmp(how, "class"))
		strcpy(spec->class_name, "TOUCH");
	else if (!strcmp(how, "grace"))
		spec->grace_ms = 3600000;
	else if (!strcmp(how, "job"))
		spec->job[strlen(spec->job) - 1] ^= 1;
	else if (!strcmp(how, "node"))
		strcpy(spec->node, "another");
	else if (!strcmp(how, "nonce"))
		spec->nonce[0] = spec->nonce[0] == '0' ? '1' : '0';
	else
		return false;
	return true;
}

/* --- sending ------------------------------------------------------------------------- */

static int connect_in_clear(unsigned port)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		cannot("connect", strerror(errno));
	return fd;
}

static int connect_target(const struct start *s)
{
	struct iocom_err err = {0};
	struct records records;
	int fd;

	if (!strcmp(s->how, "clear"))
		return connect_in_clear(s->target.port);
	fd = sealed_connect(&s->target, &s->hello, &records, &err);
	if (fd >= 0)
		return sealed_serve(fd, &records);
	printf("refused: %s\n", err.text);
	exit(1);
}

static int connect_local(const struct start *s, uid_t uid)
{
	struct iocom_err err = {0};
	int fd;

	become(uid);
	if (client_connect(s->run_dir, &fd, &err))
		cannot("connect", err.text);
	become(0);
	return fd;
}

/* The message in a file: what its stream needs is before it. */
struct kept {
	uint8_t key[SECRET_KEY];
	char job[SPEC_JOB_MAX];
};

static void keep(const struct start *s, const msgpack_sbuffer *message)
{
	int fd = open(s->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	const char *file = s->file;
	struct kept kept = {0};

	memcpy(kept.key, s->target.key, sizeof(kept.key));
	memcpy(kept.job, s->hello.job, sizeof(kept.job));
	if (fd < 0 || write(fd, &kept, sizeof(kept)) != sizeof(kept) ||
	    write(fd, message->data, message->size) != (ssize_t)message->size)
		cannot(file, strerror(errno));
	close(fd);
}

/* Reads to the end of the stream. Returns what main returns. */
static int outcome(int fd)
{
	struct iocom_err err = {0};
	struct frame frame;
	int rc;

	while ((rc = frame_read(fd, &frame, FRAME_DATA_MAX + 1, &err)) == 0) {
		if (frame.type == FRAME_ERROR) {
			printf("refused: %s\n", (char *)frame.payload);
			return 1;
		}
		if (frame.type == FRAME_EXIT) {
			printf("started, exit %u %u %.200s\n", frame.payload[0],
			       wire_u32(frame.payload + 1), (char *)frame.payload + 5);
			return frame.payload[0] ? 1 : 0;
		}
		frame_free(&frame);
	}
	printf("refused: %s\n", err.text);
	return 1;
}

static int send_start(const struct start *s, int fd, const struct spec *spec,
		      const char *credential)
{
	struct iocom_err err = {0};
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	size_t length;
	void *packed;

	if (spec_pack(spec, &packed, &length, &err))
		cannot("pack", err.text);
	pack_begin(&pk, &buffer, credential ? 2 : 1);
	if (credential)
		pack_str(&pk, "cred", credential);
	pack_bin(&pk, "spec", packed, length);
	if (s->file)
		keep(s, &buffer);
	if (frame_write(fd, FRAME_START, buffer.data, (uint32_t)buffer.size))
		cannot("send", strerror(errno));
	msgpack_sbuffer_destroy(&buffer);
	free(packed);
	return outcome(fd);
}

static int send_file(struct start *s)
{
	static char data[1 << 20];
	int from = open(s->file, O_RDONLY | O_CLOEXEC), fd;
	struct kept kept;
	ssize_t n;

	if (read(from, &kept, sizeof(kept)) != sizeof(kept))
		cannot(s->file, "too short");
	n = read(from, data, sizeof(data));
	s->target = (struct run_target){.address = "127.0.0.1", .port = (unsigned)atoi(s->run_dir)};
	memcpy(s->target.key, kept.key, sizeof(kept.key));
	stream_hello_fill(&s->hello, STREAM_KIND_START, kept.job, s->node, "");
	fd = connect_target(s);
	if (n <= 0 || frame_write(fd, FRAME_START, data, (uint32_t)n))
		cannot(s->file, strerror(errno));
	return outcome(fd);
}

/* True for a HOW that changes nothing after the credential was made. */
static bool is_whole(const char *how)
{
	static const char *const all[] = {"none",	 "type",    "hash",    "uid",
					  "none-at-all", "garbage", "changed", "key",
					  "local",	 "capture", "clear",   "stranger"};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(how, all[i]))
			return true;
	return false;
}

/* Connects like a true client; for some cases of another user, to the agent's own socket. */
static int connect_as(const struct start *s)
{
	if (!strcmp(s->how, "local"))
		return connect_local(s, OTHER_UID);
	return *s->target.address ? connect_target(s) : connect_local(s, s->uid);
}

static int attack(struct start *s)
{
	struct spec spec, second;
	char *credential;

	for (int i = !strcmp(s->how, "hoard") ? atoi(s->mark) : 1; i > 1; i--)
		ask_lease(s, &spec);
	ask_lease(s, &spec);
	if (!strcmp(s->how, "hoard"))
		return 0;
	credential = make_credential(s, &spec);
	if (!strcmp(s->how, "swap")) {
		ask_lease(s, &second);
		memcpy(spec.job, second.job, sizeof(spec.job));
		memcpy(spec.nonce, second.nonce, sizeof(spec.nonce));
	} else if (!strcmp(s->how, "again")) {
		spec.closed ^= 1;
		send_start(s, connect_target(s), &spec, credential);
		spec.closed ^= 1;
	} else if (!strcmp(s->how, "expired")) {
		sleep(3);
	} else if (!strcmp(s->how, "stale")) {
		sleep(JOBS_LEASE_NS / 1000000000u + 2); /* the agent checks once a second */
	} else if (!tamper(s->how, &spec) && !is_whole(s->how)) {
		cannot(s->how, "no such forgery");
	}
	return send_start(s, connect_as(s), &spec, credential);
}

int main(int argc, char **argv)
{
	struct start s = {0};

	if (argc < 6) {
		fprintf(stderr, "usage: forge_start HOW RUN_DIR NODE UID MARK [FILE]\n");
		return 2;
	}
	s.how = argv[1];
	s.run_dir = argv[2];
	s.node = argv[3];
	s.uid = (uid_t)atoi(argv[4]);
	s.mark = argv[5];
	s.file = argc > 6 ? argv[6] : NULL;
	if (setgroups(0, NULL))
		cannot("setgroups", strerror(errno));
	return strcmp(s.how, "send") ? attack(&s) : send_file(&s);
}
