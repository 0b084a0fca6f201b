/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Machines of the papers, clusters from text and back, and errors in the text. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "sim/cluster.h"
#include "tests/sim/node_driver.h"

static struct sim_cluster parsed(const char *text)
{
	struct iocom_err err = {{0}};
	struct sim_cluster c;

	if (sim_cluster_parse(&c, text, &err) != 0)
		fail_msg("%s: %s", text, err.text);
	return c;
}

static bool same(const struct sim_cluster *a, const struct sim_cluster *b)
{
	return a->n == b->n && memcmp(a->machines, b->machines, a->n * sizeof(*a->machines)) == 0;
}

static void machines_are_those_of_the_papers(void **state)
{
	struct sim_machine m;

	(void)state;
	assert_int_equal(sim_machine_by_name("fc", &m), 0);
	assert_true(m.cpu_mips == 800 && m.ram_mb == 640 && m.buffer_mb == 160);
	assert_near(rules_service_ms(m.disk_fixed_ms, m.request_kb, m.disk_mb_per_s), 14.25, 1e-12);
	assert_near(
		rules_service_ms2(m.disk_fixed_ms, m.request_kb, m.request_sd_kb, m.disk_mb_per_s),
		204.625, 1e-9);
	assert_int_equal(sim_machine_by_name("acm", &m), 0);
	assert_near(rules_service_ms(m.disk_fixed_ms, 256, m.disk_mb_per_s), 16.658, 1e-4);
	assert_int_equal(sim_machine_by_name("acm-age1", &m), 0);
	assert_near(rules_service_ms(m.disk_fixed_ms, 256, m.disk_mb_per_s), 21.10, 1e-4);
	assert_near(rules_service_ms(m.disk_fixed_ms, 1000, m.disk_mb_per_s), 58.30, 1e-9);
	assert_int_equal(sim_machine_by_name("com", &m), 0);
	assert_near(rules_service_ms(m.disk_fixed_ms, 512, m.disk_mb_per_s), 8 + 512 / 40.0, 1e-12);
	assert_int_equal(sim_machine_by_name("vax", &m), 0);
	assert_near(rules_service_ms(m.disk_fixed_ms, 1, m.disk_mb_per_s), 1000.0 / 40, 1e-12);
	assert_int_equal(sim_machine_by_name("fcx", &m), -ENOENT);
	for (unsigned int i = 0; sim_machine_name(i); i++) {
		assert_int_equal(sim_machine_by_name(sim_machine_name(i), &m), 0);
		assert_null(sim_machine_check(&m));
	}
}

/* Table IV: performance against age 1 as derived in MODEL 5.8; printed seeks (E-9). */
static void disks_age(void **state)
{
	const double derived[] = {1, 0.778, 0.597, 0.454, 0.342, 0.255};
	struct sim_machine m, young;
	char name[32];

	(void)state;
	assert_int_equal(sim_machine_by_name("acm-age1", &young), 0);
	for (int age = 1; age <= 6; age++) {
		snprintf(name, sizeof(name), "acm-age%d", age);
		assert_int_equal(sim_machine_by_name(name, &m), 0);
		assert_near(rules_disk_performance(m.disk_fixed_ms, 256, m.disk_mb_per_s) /
				    rules_disk_performance(young.disk_fixed_ms, 256,
							   young.disk_mb_per_s),
			    derived[age - 1], 0.002);
	}
	assert_int_equal(sim_machine_by_name("acm-age6-printed", &m), 0);
	assert_near(m.disk_fixed_ms, 3.72 + 5.07, 1e-12);
	assert_true(m.disk_mb_per_s == 3.72);
	assert_int_equal(sim_machine_by_name("acm-age3-printed", &m), -ENOENT);
}

/* Table VI: means of 100 MIPS and 480 MB, heterogeneity as printed. */
static void systems_are_table_6(void **state)
{
	const double cpu[] = {0, 0.27, 0.27, 0.35, 0.35}, mem[] = {0, 0.2, 0.2, 0.28, 0.28};
	const double disk[] = {0, 0, 0.245, 0.201, 0.294};
	const char *names[] = {"acm-a", "acm-b", "acm-c", "acm-d", "acm-e"};

	(void)state;
	for (int s = 0; s < 5; s++) {
		struct sim_cluster c = parsed(names[s]);
		double w[3][60], most[3] = {0}, mips = 0, ram = 0;

		assert_int_equal(c.n, 60);
		for (uint32_t i = 0; i < 60; i++) {
			most[0] = fmax(most[0], c.machines[i].cpu_mips);
			most[1] = fmax(most[1], c.machines[i].ram_mb);
			most[2] = fmax(most[2], c.machines[i].disk_mb_per_s);
			mips += c.machines[i].cpu_mips / 60;
			ram += c.machines[i].ram_mb / 60;
		}
		for (uint32_t i = 0; i < 60; i++) {
			w[0][i] = c.machines[i].cpu_mips / most[0];
			w[1][i] = c.machines[i].ram_mb / most[1];
			w[2][i] = c.machines[i].disk_mb_per_s / most[2];
		}
		assert_near(mips, 100, 1e-9);
		assert_near(ram, 480, 1e-9);
		assert_true(fabs(rules_heterogeneity(w[0], 60) - cpu[s]) < 0.005);
		assert_true(fabs(rules_heterogeneity(w[1], 60) - mem[s]) < 0.005);
		assert_true(fabs(rules_heterogeneity(w[2], 60) - disk[s]) < 0.001);
		sim_cluster_free(&c);
	}
}

static void systems_come_whole_or_in_sixths(void **state)
{
	struct sim_cluster whole = parsed("acm-c"), counted = parsed("60xacm-c");
	struct sim_cluster small = parsed("12xacm-c:net=125"), printed = parsed("acm-e-printed");

	(void)state;
	assert_true(same(&whole, &counted));
	assert_int_equal(small.n, 12);
	for (uint32_t i = 0; i < 12; i++) {
		assert_true(small.machines[i].cpu_mips == whole.machines[i * 5].cpu_mips);
		assert_true(small.machines[i].disk_mb_per_s == whole.machines[i * 5].disk_mb_per_s);
		assert_true(small.machines[i].network_mb_per_s == 125);
	}
	assert_near(printed.machines[0].disk_fixed_ms, 5.21 + 4.56, 1e-12);
	assert_true(printed.machines[0].cpu_mips == 50);
	assert_near(printed.machines[20].disk_fixed_ms, 8.3, 1e-12);
	sim_cluster_free(&whole);
	sim_cluster_free(&counted);
	sim_cluster_free(&small);
	sim_cluster_free(&printed);
}

static void fields_change(void **state)
{
	struct sim_cluster c = parsed(" 2xfc:cpu=1,cores=2,ram=3,buffer=1.5 + "
				      "fc:fixed=5,disk=6,request=7,sd=8,net=9");
	const struct sim_machine *m = c.machines;

	(void)state;
	assert_int_equal(c.n, 3);
	assert_true(m[1].cpu_mips == 1 && m[1].cores == 2 && m[1].ram_mb == 3 &&
		    m[1].buffer_mb == 1.5 && m[1].disk_mb_per_s == 40);
	assert_true(m[2].disk_fixed_ms == 5 && m[2].disk_mb_per_s == 6 && m[2].request_kb == 7 &&
		    m[2].request_sd_kb == 8 && m[2].network_mb_per_s == 9);
	sim_cluster_free(&c);
	c = parsed("fc:cpu_mips=2,disk_mb_per_s=3,network_mb_per_s=4");
	assert_true(c.machines[0].cpu_mips == 2 && c.machines[0].disk_mb_per_s == 3 &&
		    c.machines[0].network_mb_per_s == 4);
	sim_cluster_free(&c);
	c = parsed("fc:ram=0"); /* memory is never short */
	assert_true(c.machines[0].ram_mb == 0);
	sim_cluster_free(&c);
}

static void text_comes_back(void **state)
{
	const char *texts[] = {"6xfc",
			       "acm-b",
			       "acm-e-printed",
			       "32xcom",
			       "5xacm-age1+1xacm-age4",
			       "3xfc+2xvax:cpu=0.1,disk=3.3333333333333335,net=1e-3+fc"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct sim_cluster c = parsed(texts[i]), again, copy;
		char *text = sim_cluster_format(&c);

		assert_non_null(text);
		again = parsed(text);
		assert_true(same(&c, &again));
		assert_int_equal(sim_cluster_copy(&copy, &c), 0);
		assert_true(same(&c, &copy));
		free(text);
		sim_cluster_free(&c);
		sim_cluster_free(&again);
		sim_cluster_free(&copy);
	}
}

static void refuses(const char *text, const char *place, const char *what)
{
	struct iocom_err err = {{0}};
	struct sim_cluster c;

	assert_int_equal(sim_cluster_parse(&c, text, &err), -EINVAL);
	assert_null(c.machines);
	if (!strstr(err.text, place) || !strstr(err.text, what))
		fail_msg("\"%s\": %s", text, err.text);
}

static void mistakes_are_pointed_at(void **state)
{
	(void)state;
	refuses("", "character 1", "no machine is named \"\"");
	refuses("6xfc+", "character 6", "no machine");
	refuses("6xfc+3xfoo", "character 8", "\"foo\"");
	refuses("6fc", "character 2", "\"x\"");
	refuses("0xfc", "character 1", "count of 1 or more");
	refuses("99999999999999999999xfc", "character 1", "at most");
	refuses("1000000xfc+1xfc", "character 16", "more than");
	refuses("fc:speed=3", "character 4", "a field expected");
	refuses("fc:cpu", "character 7", "\"=\"");
	refuses("fc:cpu=", "character 8", "a number");
	refuses("fc:cpu=fast", "character 8", "a number");
	refuses("fc:cpu=1;disk=3", "character 9", "expected");
	refuses("fc:cpu=0", "character 3", "cpu must be above 0");
	refuses("fc:cpu=nan", "character 3", "cpu");
	refuses("fc:disk=-1", "character 3", "disk");
	refuses("fc:cores=0.5", "character 3", "cores");
	refuses("fc:buffer=640", "character 3", "buffer must be less than ram");
	refuses("fc:net=inf", "character 3", "net");
	refuses("7xacm-b", "character 3", "multiple");
	refuses("fc fc", "character 4", "expected");
}

static void files_have_rows(void **state)
{
	char path[] = "/tmp/iocom-cluster-XXXXXX", at[64];
	struct iocom_err err = {{0}};
	struct sim_cluster c;
	int fd = mkstemp(path);
	FILE *f;

	(void)state;
	assert_true(fd >= 0);
	f = fdopen(fd, "w");
	fputs("# two kinds\n\n2xfc  # plain\n 3xvax:ram=8 + com\n", f);
	fclose(f);
	snprintf(at, sizeof(at), "@%s", path);
	c = parsed(at);
	assert_int_equal(c.n, 6);
	assert_true(c.machines[2].ram_mb == 8 && c.machines[5].cpu_mips == 1000);
	sim_cluster_free(&c);
	f = fopen(path, "w");
	fputs("2xfc\n\n2xfc:cpu=0\n", f);
	fclose(f);
	refuses(at, "line 3, column 5", "cpu");
	f = fopen(path, "w");
	fputs("# nothing\n", f);
	fclose(f);
	refuses(at, path, "names no machine");
	unlink(path);
	assert_int_equal(sim_cluster_parse(&c, at, &err), -ENOENT);
	assert_non_null(strstr(err.text, path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machines_are_those_of_the_papers),
		cmocka_unit_test(disks_age),
		cmocka_unit_test(systems_are_table_6),
		cmocka_unit_test(systems_come_whole_or_in_sixths),
		cmocka_unit_test(fields_change),
		cmocka_unit_test(text_comes_back),
		cmocka_unit_test(mistakes_are_pointed_at),
		cmocka_unit_test(files_have_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
