/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom calibrate` measures this machine and prints what its agent's configuration should say. */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/calibrate/calibrate.h"
#include "balancer/commands.h"
#include "balancer/listing.h"
#include "balancer/placement_request.h"

#define SIZE_BYTES  (256u << 20)
#define SECONDS	    1.0
#define SECONDS_MAX 60.0
#define SIZE_MAX_GB 1e3

static const char help[] =
	"usage: iocom calibrate [--dir DIR] [--size SIZE] [--seconds S]\n"
	"                       [--reference SCORE] [--json]\n"
	"Measures how fast one processor and the disk of DIR are, and prints the lines\n"
	"for /etc/iocom/iocom.conf. Run it on a quiet machine, on the disk where jobs\n"
	"have their data. It takes about ten seconds, writes SIZE once, and leaves\n"
	"nothing.\n\n"
	"  --dir DIR          a directory of the disk [.]\n"
	"  --size SIZE        of the file, for example 1G: more than the disk's own cache\n"
	"                     [256Mi]\n"
	"  --seconds S        that each measurement takes [1]\n"
	"  --reference SCORE  the processor's score on the reference machine: cpu-speed\n"
	"                     is relative\n"
	"  --no-disk          only the processor\n"
	"  --json             print one document\n\n"
	"Exit status: 0 measured, 1 failed, 2 usage.\n";

struct calibrate {
	struct calibrate_disk_plan plan;
	double reference; /* 0: not given */
	bool json, no_disk;
};

static void show_progress(void *arg, const char *what)
{
	(void)arg;
	fprintf(stderr, "\r\033[Kmeasuring %s ...", what);
}

static void end_progress(const struct calibrate *c)
{
	if (c->plan.progress)
		fputs("\r\033[K", stderr);
}

static int take_number(const char *option, const char *text, double most, double *out)
{
	char *end;

	*out = strtod(text, &end);
	if (end != text && !*end && *out > 0 && *out <= most)
		return 0;
	fprintf(stderr, "iocom calibrate: %s takes a number above 0, at most %g, not '%s'\n",
		option, most, text);
	return 2;
}

static int take_size(const char *text, uint64_t *out)
{
	double bytes;

	if (placement_request_size(text, 1, &bytes) || bytes < (1 << 20) ||
	    bytes > SIZE_MAX_GB * 1e9) {
		fprintf(stderr,
			"iocom calibrate: --size takes 1Mi to %.0fG bytes, for example 256Mi, not "
			"'%s'\n",
			SIZE_MAX_GB, text);
		return 2;
	}
	*out = (uint64_t)bytes;
	return 0;
}

/* Returns 0; -1: help was printed; else the exit status. */
static int cmd_calibrate_options(struct calibrate *c, int argc, char **argv)
{
	static const struct option options[] = {
		{"dir", required_argument, NULL, 'd'},
		{"size", required_argument, NULL, 's'},
		{"seconds", required_argument, NULL, 't'},
		{"reference", required_argument, NULL, 'r'},
		{"no-disk", no_argument, NULL, 'n'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int o, rc = 0;

	while (!rc && (o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (o) {
		case 'd':
			c->plan.directory = optarg;
			break;
		case 's':
			rc = take_size(optarg, &c->plan.bytes);
			break;
		case 't':
			rc = take_number("--seconds", optarg, SECONDS_MAX, &c->plan.seconds);
			break;
		case 'r':
			rc = take_number("--reference", optarg, 1e9, &c->reference);
			break;
		case 'n':
			c->no_disk = true;
			break;
		case 'j':
			c->json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return -1;
		default:
			return listing_usage("iocom calibrate");
		}
	}
	if (!rc && optind < argc) {
		fprintf(stderr, "iocom calibrate: unexpected '%s'\n", argv[optind]);
		rc = 2;
	}
	return rc;
}

/* --- what was measured -------------------------------------------------------------------- */

static json_t *calibrate_disk_json(const struct calibrate *c, const struct calibrate_disk *d)
{
	json_t *depths = json_array();

	for (unsigned i = 0; depths && i < CALIBRATE_DEPTHS; i++)
		json_array_append_new(depths, json_pack("{s:i,s:f}", "at_a_time", 1 << i, "per_s",
							d->reads_per_s[i]));
	return json_pack("{s:s,s:f,s:f,s:f,s:f,s:o,s:f,s:f,s:f}", "directory", c->plan.directory,
			 "read_mb_per_s", d->read_mb_per_s, "write_mb_per_s", d->write_mb_per_s,
			 "small_ms", d->small_ms, "fixed_ms", d->fixed_ms, "small_reads", depths,
			 "parallel_small", d->parallel_small, "streams_mb_per_s",
			 d->streams_mb_per_s, "parallel", d->parallel);
}

static int print_json(const struct calibrate *c, double score, const struct calibrate_disk *disk)
{
	json_t *out = json_pack("{s:f}", "cpu_score", score);
	int rc;

	if (out && c->reference > 0)
		json_object_set_new(out, "cpu_speed", json_real(score / c->reference));
	if (out && !c->no_disk)
		json_object_set_new(out, "disk", calibrate_disk_json(c, disk));
	rc = out ? listing_print_json(out) : 1;
	json_decref(out);
	return rc;
}

static void print_disk(const struct calibrate *c, const struct calibrate_disk *d)
{
	char value[32];

	printf("Disk of %s:\n", c->plan.directory);
	printf("  reads in order     %10.1f MB/s\n", d->read_mb_per_s);
	printf("  %d streams together %10.1f MB/s\n", CALIBRATE_STREAMS, d->streams_mb_per_s);
	printf("  writes in order    %10.1f MB/s\n", d->write_mb_per_s);
	listing_quantity(value, sizeof(value), d->small_ms);
	printf("  a read of 4 KiB    %10s ms, of which %.3g ms are not its bytes\n", value,
	       d->fixed_ms);
	printf("  reads of 4 KiB a second, by how many are under way:");
	for (unsigned i = 0; i < CALIBRATE_DEPTHS; i++)
		printf("%s %u: %.0f", i ? "," : "", 1u << i, d->reads_per_s[i]);
	printf("\n  so it serves %.1f of them at a time, %.1f streams, and %.1f tasks of any "
	       "kind\n",
	       d->parallel_small, d->streams_mb_per_s / d->read_mb_per_s, d->parallel);
}

static int print_text(const struct calibrate *c, double score, const struct calibrate_disk *disk)
{
	printf("Processor: score %.1f", score);
	if (c->reference > 0)
		printf(", %.2f times the reference", score / c->reference);
	putchar('\n');
	if (!c->no_disk)
		print_disk(c, disk);
	printf("\nFor the part [iocom] of /etc/iocom/iocom.conf:\n");
	if (c->reference > 0)
		printf("cpu_speed = %.3g\n", score / c->reference);
	else
		printf("# cpu_speed: choose one machine as the reference, and say --reference %.1f "
		       "on the others\n",
		       score);
	if (!c->no_disk)
		printf("disk_mb_per_s = %.4g\ndisk_fixed_ms = %.3g\ndisk_parallel = %.2g\n",
		       disk->read_mb_per_s, disk->fixed_ms, disk->parallel);
	return listing_end();
}

int cmd_calibrate(int argc, char **argv)
{
	struct calibrate c = {
		.plan = {.directory = ".", .bytes = SIZE_BYTES, .seconds = SECONDS},
	};
	struct calibrate_disk disk = {.parallel = 0};
	struct iocom_err err = {0};
	double score;
	int rc = cmd_calibrate_options(&c, argc, argv);

	if (rc)
		return rc < 0 ? 0 : rc;
	if (isatty(STDERR_FILENO))
		c.plan.progress = show_progress;
	if (c.plan.progress)
		show_progress(NULL, "the processor");
	score = calibrate_cpu(c.plan.seconds);
	rc = c.no_disk ? 0 : calibrate_disk(&c.plan, &disk, &err);
	end_progress(&c);
	if (rc || score <= 0) {
		fprintf(stderr, "iocom calibrate: %s\n", rc ? err.text : "out of memory");
		return 1;
	}
	return c.json ? print_json(&c, score, &disk) : print_text(&c, score, &disk);
}
