/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See pam.h. */
#include "agent/shim/pam.h"

#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <security/pam_appl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "agent/shim/child.h"
#include "user/library.h"
#include "user/pam_service.h"

#define PAM_LATE_MS 20000 /* time to report a module that did not answer */

struct pam {
	void *library;
	pam_handle_t *handle;
	int last;	/* PAM's last result, which pam_end wants */
	bool credited;	/* we must delete the credentials */
	bool opened;	/* we must close the session */
	char said[200]; /* the modules' words in the present step, for the sentence */
	typeof(&pam_start_confdir) start;
	typeof(&pam_end) end;
	typeof(&pam_set_item) set_item;
	typeof(&pam_acct_mgmt) account;
	typeof(&pam_setcred) credentials;
	typeof(&pam_open_session) open;
	typeof(&pam_close_session) close;
	typeof(&pam_strerror) text;
	typeof(&pam_getenvlist) variables;
};

/* The properties of a process that a session may change. */
struct process {
	struct rlimit limits[RLIM_NLIMITS];
	int priority;
	mode_t umask;
	gid_t *groups; /* NULL: not known */
	int ngroups;
};

/* --- the library -------------------------------------------------------------- */

static int pam_load(struct pam *pam, struct iocom_err *err)
{
	const struct library_symbol wanted[] = {
		{"pam_start_confdir", &pam->start},  {"pam_end", &pam->end},
		{"pam_set_item", &pam->set_item},    {"pam_acct_mgmt", &pam->account},
		{"pam_setcred", &pam->credentials},  {"pam_open_session", &pam->open},
		{"pam_close_session", &pam->close},  {"pam_strerror", &pam->text},
		{"pam_getenvlist", &pam->variables},
	};

	pam->library = dlopen("libpam.so.0", RTLD_NOW | RTLD_LOCAL);
	if (!pam->library)
		return iocom_err_set(err, -ENOENT,
				     "PAM is required (pam = on), but libpam is missing: %s",
				     dlerror());
	if (library_symbols(pam->library, wanted, sizeof(wanted) / sizeof(*wanted)))
		return iocom_err_set(err, -ENOENT,
				     "PAM is required, but this libpam is too old: %s", dlerror());
	return 0;
}

/* --- the conversation: there is nobody to ask ---------------------------------------- */

/* Adds TEXT to what was said, as one line: words with one space between them. */
static void listen_to(struct pam *pam, const char *text)
{
	size_t n = strlen(pam->said);

	if (n && text && *text && n + 1 < sizeof(pam->said))
		pam->said[n++] = ' ';
	for (; text && *text && n + 1 < sizeof(pam->said); text++) {
		char c = *text > ' ' && *text < 0x7f ? *text : ' ';

		if (c != ' ' || (n && pam->said[n - 1] != ' '))
			pam->said[n++] = c;
	}
	while (n && pam->said[n - 1] == ' ')
		n--;
	pam->said[n] = 0;
}

static int converse(int n, const struct pam_message **messages, struct pam_response **answers,
		    void *arg)
{
	struct pam_response *empty;

	if (n <= 0 || n > PAM_MAX_NUM_MSG)
		return PAM_CONV_ERR;
	for (int i = 0; i < n; i++) {
		if (messages[i]->msg_style != PAM_ERROR_MSG &&
		    messages[i]->msg_style != PAM_TEXT_INFO)
			return PAM_CONV_ERR;
		listen_to(arg, messages[i]->msg);
	}
	empty = calloc((size_t)n, sizeof(*empty)); /* PAM frees it */
	if (!empty)
		return PAM_BUF_ERR;
	*answers = empty;
	return PAM_SUCCESS;
}

/* --- what a session changes ------------------------------------------------------- */

static void process_read(struct process *p)
{
	for (int i = 0; i < RLIM_NLIMITS; i++)
		getrlimit((__rlimit_resource_t)i, &p->limits[i]);
	p->priority = getpriority(PRIO_PROCESS, 0);
	p->umask = umask(077);
	umask(p->umask);
	p->ngroups = getgroups(0, NULL);
	p->groups = p->ngroups < 0 ? NULL : malloc(((size_t)p->ngroups + 1) * sizeof(gid_t));
	if (p->groups)
		p->ngroups = getgroups(p->ngroups, p->groups);
}

static void process_restore(const struct process *p)
{
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		struct rlimit now;

		/* Root without CAP_SYS_RESOURCE cannot raise a hard limit again. */
		if (!setrlimit((__rlimit_resource_t)i, &p->limits[i]) ||
		    getrlimit((__rlimit_resource_t)i, &now))
			continue;
		now.rlim_cur = now.rlim_max;
		(void)setrlimit((__rlimit_resource_t)i, &now);
	}
	(void)setpriority(PRIO_PROCESS, 0, p->priority);
	umask(p->umask);
	if (p->groups)
		(void)setgroups((size_t)p->ngroups, p->groups);
}

static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return !strncmp(a, b, n) && b[n] == '=';
}

/* Puts VARIABLES, an array of malloc'ed strings, into the job's environment and takes them. */
static int pam_merge(struct spec *spec, char **variables)
{
	size_t have = 0, more = 0;
	char **grown;

	while (spec->env && spec->env[have])
		have++;
	while (variables[more] && more < PAM_NAMES_MAX)
		more++;
	grown = realloc(spec->env, (have + more + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	spec->env = grown;
	for (size_t i = 0; i < more; i++) {
		size_t at = 0;

		while (at < have && !same_name(variables[i], grown[at]))
			at++;
		if (at < have)
			free(grown[at]);
		else
			have++;
		grown[at] = variables[i];
		variables[i] = NULL;
	}
	grown[have] = NULL;
	for (size_t i = more; variables[i]; i++)
		free(variables[i]);
	return 0;
}

/* --- a module that hangs ------------------------------------------------------------ */

static sigjmp_buf overdue; /* a signal handler gets no context of ours, so this is global */

static void too_late(int signal)
{
	siglongjmp(overdue, signal);
}

/* Raises SIGALRM after MS; 0: never. */
static void pam_limit(uint32_t ms, void (*handler)(int signal))
{
	const struct sigaction action = {.sa_handler = handler};
	const struct itimerval until = {
		.it_value = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000}};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &until, NULL);
}

/* Kills programs that modules run (pam_exec): before the job starts we have no other children. */
static void kill_children(void)
{
	FILE *in = fopen("/proc/thread-self/children", "re");
	int pid;

	while (in && fscanf(in, "%d", &pid) == 1 && pid > 1) {
		kill(-pid, SIGKILL); /* pam_exec makes them group leaders */
		kill(pid, SIGKILL);
	}
	if (in)
		fclose(in);
}

/* --- account and session ------------------------------------------------------------ */

/* The modules' own words come first: the sentence may be cut at its end. */
static int pam_refused(struct pam *pam, const struct order *order, const char *user,
		       const char *what, struct iocom_err *err)
{
	const char *why = pam->text(pam->handle, pam->last);

	if (*pam->said)
		return iocom_err_set(err, -EACCES,
				     "node %s does not let user %s in: %s (its PAM service %s/%s "
				     "refuses the %s: %s)",
				     order->spec.node, user, pam->said, order->pam,
				     SHIM_PAM_SERVICE, what, why);
	return iocom_err_set(err, -EACCES,
			     "node %s does not let user %s in: its PAM service %s/%s refuses the "
			     "%s: %s",
			     order->spec.node, user, order->pam, SHIM_PAM_SERVICE, what, why);
}

static int pam_no_credentials(struct pam *pam, const struct order *order, const char *user,
			      struct iocom_err *err)
{
	if (pam_service_has_auth(order->pam, SHIM_PAM_SERVICE))
		return pam_refused(pam, order, user, "credentials", err);
	return iocom_err_set(err, -EACCES,
			     "node %s does not let user %s in: its PAM service %s/%s has no auth "
			     "line, and PAM sets credentials (pam_setcred) by these lines only; "
			     "add: auth required pam_permit.so",
			     order->spec.node, user, order->pam, SHIM_PAM_SERVICE);
}

static int pam_begin_session(struct pam *pam, const struct order *order, const char *user,
			     struct iocom_err *err)
{
	const struct pam_conv conversation = {converse, pam};
	char path[sizeof(order->pam) + sizeof(SHIM_PAM_SERVICE) + 1];

	/* Without the file PAM would use the service "other". */
	snprintf(path, sizeof(path), "%s/%s", order->pam, SHIM_PAM_SERVICE);
	if (access(path, R_OK))
		return iocom_err_set(err, -ENOENT,
				     "node %s lets users in by PAM (pam = on) but cannot read its "
				     "service file %s: %s",
				     order->spec.node, path, strerror(errno));
	pam->last = pam->start(SHIM_PAM_SERVICE, user, &conversation, order->pam, &pam->handle);
	if (pam->last != PAM_SUCCESS)
		return iocom_err_set(err, -EACCES, "node %s cannot start PAM: error %d",
				     order->spec.node, pam->last);
	/* pam_time and pam_access need a terminal's name; cron and sshd also set one. */
	pam->last = pam->set_item(pam->handle, PAM_TTY, SHIM_PAM_SERVICE);
	if (pam->last == PAM_SUCCESS)
		pam->last = pam->set_item(pam->handle, PAM_RUSER, user);
	return pam->last == PAM_SUCCESS ? 0 : pam_refused(pam, order, user, "session", err);
}

/* Forgets what the modules said, and calls one of PAM's four functions. */
static bool pam_step(struct pam *pam, typeof(&pam_acct_mgmt) step, int flags)
{
	pam->said[0] = 0;
	pam->last = step(pam->handle, flags);
	return pam->last == PAM_SUCCESS;
}

static int pam_ask(struct pam *pam, struct order *order, const struct identity *identity,
		   struct iocom_err *err)
{
	const char *user = identity->name;
	char **variables;
	int rc;

	if (!pam_step(pam, pam->account, 0))
		return pam_refused(pam, order, user, "account", err);
	/* Modules add to the process's groups (pam_group), as after initgroups(3). */
	if (setgroups((size_t)identity->ngroups, identity->groups))
		return iocom_err_set(err, -errno, "cannot set the groups of user %s for PAM: %s",
				     user, strerror(errno));
	if (!pam_step(pam, pam->credentials, PAM_ESTABLISH_CRED))
		return pam_no_credentials(pam, order, user, err);
	pam->credited = true;
	if (!pam_step(pam, pam->open, 0))
		return pam_refused(pam, order, user, "session", err);
	pam->opened = true;
	variables = pam->variables(pam->handle);
	if (!variables)
		return iocom_err_set(err, -ENOMEM, "out of memory for the session's variables");
	rc = pam_merge(&order->spec, variables);
	free(variables);
	return rc ? iocom_err_set(err, rc, "out of memory for the session's variables") : 0;
}

/*
 * Starts PAM and asks it, within ORDER's begin_ms. -ETIMEDOUT: we left a module in the middle,
 * and it may hold a lock. So PAM must not be called again; code that waits for that lock ends
 * with the next SIGALRM.
 */
static int ask_in_time(struct pam *pam, struct order *order, const struct identity *identity,
		       struct iocom_err *err)
{
	const char *user = identity->name;
	int rc;

	if (sigsetjmp(overdue, 1)) {
		pam_limit(PAM_LATE_MS, SIG_DFL);
		kill_children();
		return iocom_err_set(
			err, -ETIMEDOUT,
			"node %s does not let user %s in: its PAM service %s/%s did not "
			"answer within %u ms%s%s",
			order->spec.node, user, order->pam, SHIM_PAM_SERVICE, order->begin_ms,
			*pam->said ? ": " : "", pam->said);
	}
	pam_limit(order->begin_ms, too_late);
	rc = pam_begin_session(pam, order, user, err);
	if (!rc)
		rc = pam_ask(pam, order, identity, err);
	pam_limit(0, SIG_DFL);
	return rc;
}

/* Gives the job what the session CHANGED, and takes its groups. */
static void pam_give(struct identity *identity, struct process *changed)
{
	struct pam_settings *settings = &identity->session;

	settings->set = true;
	memcpy(settings->limits, changed->limits, sizeof(settings->limits));
	settings->priority = changed->priority;
	free(identity->groups);
	identity->groups = changed->groups;
	identity->ngroups = changed->ngroups;
	changed->groups = NULL;
}

int pam_begin(struct pam **out, struct order *order, struct identity *identity,
	      struct iocom_err *err)
{
	struct pam *pam = calloc(1, sizeof(*pam));
	struct process own, changed;
	int rc;

	if (!pam)
		return iocom_err_set(err, -ENOMEM, "out of memory for PAM");
	process_read(&own);
	rc = pam_load(pam, err);
	if (!rc)
		rc = ask_in_time(pam, order, identity, err);
	process_read(&changed);
	process_restore(&own);
	if (!rc && !changed.groups)
		rc = iocom_err_set(err, -ENOMEM, "out of memory for the session's groups");
	if (!rc) {
		pam_give(identity, &changed);
		*out = pam;
	} else if (rc != -ETIMEDOUT) { /* then PAM's state is undefined */
		pam_finish(pam);
	}
	free(own.groups);
	free(changed.groups);
	return rc;
}

void pam_finish(struct pam *pam)
{
	if (!pam)
		return;
	alarm(PAM_CLOSE_S);
	if (pam->opened)
		pam->last = pam->close(pam->handle, 0);
	if (pam->credited)
		pam->last = pam->credentials(pam->handle, PAM_DELETE_CRED);
	if (pam->handle)
		pam->end(pam->handle, pam->last);
	alarm(0);
	if (pam->library)
		dlclose(pam->library);
	free(pam);
}
