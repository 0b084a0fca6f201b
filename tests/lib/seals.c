/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See seals.h. */
#include "tests/lib/seals.h"

#include <stdlib.h>
#include <string.h>

int seals_new(struct seals *s, const char *socket, struct iocom_err *err)
{
	int rc;

	*s = (struct seals){0};
	rc = loop_new(&s->loop, err);
	if (!rc)
		rc = seal_new(&s->seal, s->loop, &s->counters, socket, err);
	if (rc)
		seals_free(s);
	return rc;
}

void seals_free(struct seals *s)
{
	seal_free(s->seal);
	loop_free(s->loop);
	*s = (struct seals){0};
}

static void seals_answered(void *arg, struct seal_answer *answer)
{
	struct seals *s = arg;

	s->answered = true;
	s->answer = *answer;
	answer->text = NULL;
	answer->data = NULL;
	answer->credential.bound = NULL;
	loop_stop(s->loop);
}

/* Waits for the answer if RC, what the question's function returned, is 0. */
static int seals_wait(struct seals *s, int rc, struct iocom_err *err)
{
	if (rc)
		return rc;
	s->answered = false;
	while (!s->answered)
		loop_run(s->loop);
	if (s->answer.rc && err)
		*err = s->answer.err;
	return s->answer.rc;
}

int seals_message(struct seals *s, const void *data, size_t length, char **credential,
		  struct iocom_err *err)
{
	struct seal_question *question;
	int rc = seal_message(s->seal, data, length, seals_answered, s, &question, err);

	*credential = NULL;
	rc = seals_wait(s, rc, err);
	if (!rc)
		*credential = s->answer.text;
	return rc;
}

int seals_open(struct seals *s, const void *credential, size_t length, void **data,
	       size_t *data_length, struct iocom_err *err)
{
	struct seal_question *question;
	int rc = seal_open_message(s->seal, SEAL_FOREIGN, credential, length, seals_answered, s,
				   &question, err);

	*data = NULL;
	*data_length = 0;
	s->answer.data = NULL;
	rc = seals_wait(s, rc, err);
	*data = s->answer.data;
	*data_length = s->answer.length;
	return rc;
}

int seals_credential(struct seals *s, struct credential *credential, const char *text,
		     struct iocom_err *err)
{
	struct seal_question *question;
	int rc =
		seal_open_credential(s->seal, SEAL_STARTS, text, seals_answered, s, &question, err);

	*credential = (struct credential){.uid = (uid_t)-1, .gid = (gid_t)-1};
	rc = seals_wait(s, rc, err);
	if (!rc)
		*credential = s->answer.credential;
	return rc;
}
