/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Every kind of bad trace is refused with its exact line and column, and nothing is kept. */
#include "tests/sim/workload_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define DARSHAN                                                                                    \
	"darshan_start_time,darshan_walltime,darshan_nprocs,darshan_tot_reads_posix,"              \
	"darshan_tot_writes_posix,darshan_tot_bytes_read_posix,darshan_tot_bytes_written_posix\n"
#define SWF_ROW "1 0 0 5 1 5 -1 1 -1 -1 1 1 1 1 1 -1 -1 -1\n"
#define CSD	"hour,min,unk,sec,prog\n"
#define BLOCK	"version,time,op,size,lbn\n"
#define FORMATS                                                                                    \
	"a workload (eight columns, CSD csv, SWF, Darshan csv, block csv, iocom recording; "       \
	"gzip or plain)"

struct refusal {
	const char *text, *message;
};

static void check(const struct refusal *rows, size_t n, const struct workload_options *o)
{
	for (size_t i = 0; i < n; i++)
		refused(rows[i].text, o, rows[i].message);
}

#define CHECK(rows, o) check(rows, sizeof(rows) / sizeof((rows)[0]), o)

static void test_recognition(void **state)
{
	static const struct refusal rows[] = {
		{"", "t:1:1: expected " FORMATS ", found \"end of file\""},
		{"\n\n# nothing\n", "t:3:1: expected " FORMATS ", found \"end of file\""},
		{"hello world\n", "t:1:1: expected " FORMATS ", found \"hello world\""},
		{"a,b,c\n1,2,3\n", "t:1:1: expected " FORMATS ", found \"a,b,c\""},
		{"\x7f"
		 "ELF\x01\x02",
		 "t:1:1: expected " FORMATS ", found \"?ELF??\""},
		{"hour,min,unk,sec\n", "t:1:1: expected " FORMATS ", found \"hour,min,unk,sec\""},
		{"; only a header\n", "t: the trace has no job"},
		{CSD, "t: the trace has no job"},
		{BLOCK, "t: the trace has no job"},
		{DARSHAN, "t: the trace has no job"},
		{"\"hour,min\n", "t:1:10: expected the closing quote of the field, found "
				 "\"end of line\""},
	};

	(void)state;
	CHECK(rows, NULL);
}

static void test_columns8(void **state)
{
	static const struct refusal rows[] = {
		{"0 0 1 4 0 -1 0\n",
		 "t:1:15: expected 8 columns (there are 7), found \"end of line\""},
		{"0 0 1 4 0 -1 0 0 9\n",
		 "t:1:18: expected the end of the line after 8 columns, found \"9\""},
		{"0 0 1 4 0 -1 0 0\n-1 0 1 4 0 -1 0 0\n",
		 "t:2:1: expected the arrival time in s, a number from 0 to 1e+12, found \"-1\""},
		{"5 0 1 4 0 -1 0 0\n\n3 0 1 4 0 -1 0 0\n",
		 "t:3:1: expected an arrival not before that of the row above (5 s; sort the rows "
		 "by arrival), found \"3\""},
		{"0 0 -0.5 4 0 -1 0 0\n",
		 "t:1:5: expected the duration in s, a number from 0 to 1e+12, found \"-0.5\""},
		{"0 0 nan 4 0 -1 0 0\n",
		 "t:1:5: expected the duration in s, a number from 0 to 1e+12, found \"nan\""},
		{"0 0 1e999 4 0 -1 0 0\n",
		 "t:1:5: expected the duration in s, a number from 0 to 1e+12, found \"1e999\""},
		{"0 0 0x10 4 0 -1 0 0\n",
		 "t:1:5: expected the duration in s, a number from 0 to 1e+12, found \"0x10\""},
		{"0 0 1 inf 0 -1 0 0\n",
		 "t:1:7: expected the requested memory in MB, a number from 0 to 1000000000, "
		 "found \"inf\""},
		{"0 1.5 1 4 0 -1 0 0\n", "t:1:3: expected the arrival node, a whole number from 0 "
					 "to 999999, found \"1.5\""},
		{"0 unknown 1 4 0 -1 0 0\n", "t:1:3: expected the arrival node, a whole number "
					     "from 0 to 999999, found \"unknown\""},
		{"0 0 1 4 0 -2 0 0\n", "t:1:11: expected the initial I/O node (-1: the arrival "
				       "node), a whole number from -1 to 999999, found \"-2\""},
		{"0 0 1 4 0 -1 x 0\n", "t:1:14: expected the I/O type, 0 or r (reads), 1 or w "
				       "(writes), 2 or rw, found \"x\""},
		{"0,0,1,,0,-1,r,0\n", "t:1:7: expected the requested memory in MB, a number from 0 "
				      "to 1000000000, found \"\""},
		{"0,0, 1 x,4,0,-1,r,0\n", "t:1:6: expected the duration in s, a number from 0 to "
					  "1e+12, found \"1 x\""},
	};

	(void)state;
	CHECK(rows, NULL);
}

static void test_hosts(void **state)
{
	struct workload_options o = defaults();

	(void)state;
	o.nodes = 4;
	refused("0 4 1 4 0 -1 0 0\n", &o,
		"t:1:3: expected the arrival node, a whole number from 0 to 3, found \"4\"");
	refused(CSD "0,0.0,3,1,a\n0,0.0,4,1,a\n", &o,
		"t:3:7: expected the host (`unk`), a whole number from 0 to 3, found \"4\"");
}

static void test_csd(void **state)
{
	static const struct refusal rows[] = {
		{CSD "0,0.0,0,1\n",
		 "t:2:10: expected 5 fields (there are 4), found \"end of line\""},
		{CSD "0,0.0,0,1,a,b\n",
		 "t:2:13: expected the end of the line after 5 fields, found \"b\""},
		{CSD "-1,0.0,0,1,a\n", "t:2:1: expected the minute (`hour`), a whole number from 0 "
				       "to 60000000, found \"-1\""},
		{CSD "0,60,0,1,a\n", "t:2:3: expected the second in the minute (`min`), a number "
				     "from 0 to 59.9999999, found \"60\""},
		{CSD "0,1,0,1,a\n0,1,x,1,a\n", "t:3:5: expected the host (`unk`), a whole number "
					       "from 0 to 999999, found \"x\""},
		{CSD "0,1,0,-.005,a\n", "t:2:7: expected CPU seconds (`sec`), a number from 0 to "
					"1e+12, found \"-.005\""},
		{CSD "0,1,0,1,\n", "t:2:9: expected the program's name (`prog`), found \"\""},
		{CSD "0,2,0,1,a\n0,1,0,1,a\n", "t:3:3: expected an arrival not before that of the "
					       "row above, second 2 of run 0, found \"1\""},
		/* a bad line is also refused in a run that is not part of the workload */
		{CSD "0,2,0,1,a\n60,3,0,1,a\n60,1,0,1,a\n",
		 "t:4:4: expected an arrival not before that of the row above, second 3 of run 1, "
		 "found "
		 "\"1\""},
		{CSD "0,2,0,1,\"a\"b\n", "t:2:12: expected a comma after a quoted field, or \"\" "
					 "for a quote inside one, found \"b\""},
		{CSD "0,2,0,1,\"a\n", "t:2:11: expected the closing quote of the field, found "
				      "\"end of line\""},
	};
	struct workload_options o = defaults();

	(void)state;
	CHECK(rows, NULL);
	o.run = 3;
	refused(CSD "240,0,0,1,a\n0,0,0,1,a\n", &o, "t: the trace has no run 3; it has: 4, 0");
}

static void test_swf(void **state)
{
	static const struct refusal rows[] = {
		{SWF_ROW "1 0 0 5 1 5 -1 1 -1 -1 1 1 1 1 1 -1 -1\n",
		 "t:2:39: expected 18 columns (there are 17), found \"end of line\""},
		{"; x\n1 2 3\n", "t:2:6: expected 18 columns (there are 3), found \"end of line\""},
		{SWF_ROW "1 -5 0 5 1 5 -1 1 -1 -1 1 1 1 1 1 -1 -1 -1\n",
		 "t:2:3: expected the submit time in s (column 2), a number from 0 to 1e+12, found "
		 "\"-5\""},
		{SWF_ROW "1 0 0 -2 1 5 -1 1 -1 -1 1 1 1 1 1 -1 -1 -1\n",
		 "t:2:7: expected the run time in s (column 4), a number from -1 to 1e+12, found "
		 "\"-2\""},
		{SWF_ROW "1 0 0 5 1.5 5 -1 1 -1 -1 1 1 1 1 1 -1 -1 -1\n",
		 "t:2:9: expected the number of processors (column 5), a whole number from -1 to "
		 "1000000, found \"1.5\""},
		{"1 9 0 5 1 5 -1 1 -1 -1 1 1 1 1 1 -1 -1 -1\n" SWF_ROW,
		 "t:2:3: expected an arrival not before that of the row above (9 s; sort the rows "
		 "by arrival), found \"0\""},
		{"; MaxNodes: 2\n1 0 0 5 1 5 -1 1 -1 -1 1 bob 1 1 1 -1 -1 -1\n",
		 "t:2:26: expected a column (-1: unknown), a number from -1e+15 to 1e+15, found "
		 "\"bob\""},
	};

	(void)state;
	CHECK(rows, NULL);
}

static void test_darshan(void **state)
{
	static const struct refusal rows[] = {
		{"darshan_start_time,darshan_walltime\n1,2\n",
		 "t:1:1: expected a column darshan_nprocs, found "
		 "\"darshan_start_time,darshan_walltime\""},
		{DARSHAN "1,2,3\n",
		 "t:2:6: expected 7 fields (there are 3), found \"end of line\""},
		{DARSHAN "1,2,1,0,0,0,0\n0,1,2,1,0,0,0,0\n",
		 "t:3:15: expected the end of the line after 7 fields, found \"0\""},
		{DARSHAN "1,2,0,0,0,0,0\n",
		 "t:2:5: expected darshan_nprocs, a whole number from 1 to 1000000000, found "
		 "\"0\""},
		{DARSHAN "7,1,2,1,0.5,0,0,0\n", "t:2:9: expected the number of reads, a whole "
						"number from 0 to 1e+15, found \"0.5\""},
		{DARSHAN ",2,1,0,0,0,0\n",
		 "t:2:1: expected darshan_start_time in s, a number from 0 to 1e+12, found \"\""},
	};

	(void)state;
	CHECK(rows, NULL);
}

static void test_block(void **state)
{
	static const struct refusal rows[] = {
		{BLOCK "2,0,28,512,0\n",
		 "t:2:1: expected the version, a whole number from 1 to 1, found \"2\""},
		{BLOCK "1,0,99,512,0\n",
		 "t:2:5: expected a SCSI opcode in hex (28 or 2a, 08 or 0a, "
		 "88 or 8a, a8 or aa), found \"99\""},
		{BLOCK "1,0,28,0,0\n", "t:2:8: expected the size in bytes, a whole number from 1 "
				       "to 1e+15, found \"0\""},
		{BLOCK "1,5,28,512,0\n1,4,28,512,0\n",
		 "t:3:3: expected a time not before that of the row above (5 s) and at most 1e+12 "
		 "s, found "
		 "\"4\""},
		{BLOCK "1,5,28,512,-3\n", "t:2:12: expected the block number, a whole number from "
					  "0 to 1e+18, found \"-3\""},
	};

	(void)state;
	CHECK(rows, NULL);
}

static void test_recording(void **state)
{
	static const char header[] = "{\"record\":\"header\",\"version\":1}\n";
	static const char node[] = "{\"record\":\"node\",\"time_ms\":0,\"node\":0}\n";
	static const char job[] = "{\"record\":\"submit\",\"time_ms\":5,\"job\":\"1\","
				  "\"home\":0,\"class\":\"a\",\"cpu_ms\":7}\n";
	struct workload_options o = defaults();
	struct iocom_err err = {0};
	char text[400];
	struct workload *w;

	(void)state;
	o.nodes = 1;
	assert_null(workload_open(SAMPLES "recording.jsonl", &o, &err));
	assert_string_equal(err.text, SAMPLES
			    "recording.jsonl: job 0: expected a home from 0 to 0, found \"1\"");
	snprintf(text, sizeof(text), "%s%s%.*s,\"write_fraction\":1.5}\n", header, node,
		 (int)strlen(job) - 2, job);
	assert_null(workload_open_memory(text, strlen(text), "t", NULL, &err));
	assert_string_equal(err.text,
			    "t: job 1: expected a write_fraction from 0 to 1, found \"1.5\"");
	snprintf(text, sizeof(text), "%s%s%s", header, node, job);
	w = must_open_text(text, NULL);
	assert_string_equal(workload_info(w)->note,
			    "the recording was cut off: it has no end line");
	NEAR(must_next(w).cpu_ms, 7, 0);
	workload_free(w);
	/* a line that is cut off */
	text[strlen(text) - 9] = '\0';
	assert_null(workload_open_memory(text, strlen(text), "t", NULL, &err));
	assert_non_null(strstr(err.text, ":3:"));
}

static void test_options_leave_nothing(void **state)
{
	struct workload_options o = defaults();

	(void)state;
	o.from_s = 10;
	refused("0 0 1 4 0 -1 0 0\n", &o,
		"t: none of its 1 records is used: 1 are before load.from_s");
	o = defaults();
	o.min_cpu_ms = 6000;
	refused(SWF_ROW, &o,
		"t: none of its 1 records is used: 1 compute less than load.min_cpu_ms");
	/* a job that never ran */
	refused("2 0 0 -1 -1 5 -1 -1 -1 -1 1 1 1 1 1 -1 -1 -1\n", NULL,
		"t: none of its 1 records is used: 1 never ran or hold no work");
}

static void test_lines(void **state)
{
	struct iocom_err err = {0};
	char *text = malloc(70001);

	(void)state;
	memset(text, '1', 70000);
	text[70000] = 0;
	refused(text, NULL,
		"t:1:65537: expected a line of at most 65536 bytes, found "
		"\"1111111111111111111111111111111111111111...\"");
	text[65536] = '\n'; /* the longest line is read, though it is no workload */
	refused(text, NULL,
		"t:1:1: expected " FORMATS
		", found \"1111111111111111111111111111111111111111...\"");
	free(text);
	assert_null(workload_open_memory("0 0 1 \0 4", 9, "t", NULL, &err));
	assert_string_equal(err.text, "t:1:7: expected text, found \"NUL byte\"");
}

static void test_files(void **state)
{
	struct iocom_err err = {0};

	(void)state;
	assert_null(workload_open("tests/sim/data/none", NULL, &err));
	assert_string_equal(err.text, "cannot open tests/sim/data/none: No such file or directory");
	assert_null(workload_open("tests/sim/data", NULL, &err));
	assert_string_equal(err.text, "cannot read tests/sim/data: it is a directory");
}

/* --- gzip ----------------------------------------------------------------------------- */

struct packed {
	char path[64];
	unsigned char bytes[8192];
	size_t n;
};

static void write_bytes(const struct packed *p, size_t n)
{
	FILE *f = fopen(p->path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(p->bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* 300 rows in gzip, in memory and in a file. */
static void pack(struct packed *p)
{
	int fd;
	gzFile gz;
	FILE *f;

	strcpy(p->path, "/tmp/iocom-test-workload-XXXXXX");
	fd = mkstemp(p->path);
	assert_true(fd >= 0);
	gz = gzdopen(fd, "wb");
	for (int i = 0; i < 300; i++)
		gzprintf(gz, "%d %d %d.%d 4 0.%d -1 r 0\n", i, i % 6, i * 7 % 13, i * 31 % 97, i);
	assert_int_equal(gzclose(gz), Z_OK);
	f = fopen(p->path, "rb");
	p->n = fread(p->bytes, 1, sizeof(p->bytes), f);
	fclose(f);
	assert_true(p->n > 200 && p->n < sizeof(p->bytes));
}

static void open_bad(const struct packed *p, const char *ending)
{
	struct iocom_err err = {0};
	struct workload *w = workload_open(p->path, NULL, &err);
	size_t n;

	if (w)
		fail_msg("accepted; wanted %s", ending);
	n = strlen(err.text);
	assert_int_equal(strncmp(err.text, p->path, strlen(p->path)), 0);
	assert_int_equal(err.text[strlen(p->path)], ':');
	if (n < strlen(ending) || strcmp(err.text + n - strlen(ending), ending))
		fail_msg("%s", err.text);
}

static void test_gzip(void **state)
{
	static const char cut[] = ": expected the rest of the gzip data, found \"end of file\"";
	struct packed p;
	struct workload *w;

	(void)state;
	pack(&p);
	w = must_open(p.path, NULL);
	assert_int_equal(workload_info(w)->jobs, 300);
	workload_free(w);
	write_bytes(&p, p.n - 1); /* cuts the trailer */
	open_bad(&p, ":301:1: expected the rest of the gzip data, found \"end of file\"");
	write_bytes(&p, p.n - 8);
	open_bad(&p, cut);
	write_bytes(&p, p.n / 2);
	open_bad(&p, cut);
	write_bytes(&p, 12);
	open_bad(&p, ":1:1: expected the rest of the gzip data, found \"end of file\"");
	p.bytes[p.n - 6] ^= 1; /* the CRC */
	write_bytes(&p, p.n);
	open_bad(&p, ": expected intact gzip data, found \"incorrect data check\"");
	unlink(p.path);
}

static void test_pipe(void **state)
{
	struct iocom_err err = {0};
	struct workload *w;
	int ends[2];
	char path[64];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], SWF_ROW, strlen(SWF_ROW)), strlen(SWF_ROW));
	close(ends[1]);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	w = workload_open(path, NULL, &err);
	if (!w)
		fail_msg("%s", err.text);
	must_next(w);
	must_end(w);
	assert_int_equal(workload_rewind(w, &err), 0);
	must_next(w);
	workload_free(w);
	close(ends[0]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recognition),
		cmocka_unit_test(test_columns8),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_csd),
		cmocka_unit_test(test_swf),
		cmocka_unit_test(test_darshan),
		cmocka_unit_test(test_block),
		cmocka_unit_test(test_recording),
		cmocka_unit_test(test_options_leave_nothing),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_gzip),
		cmocka_unit_test(test_pipe),
	};

	return cmocka_run_group_tests_name("workload errors", tests, NULL, NULL);
}
