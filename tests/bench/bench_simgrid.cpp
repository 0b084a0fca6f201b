/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The work of simgrid_work.h in SimGrid: an actor a job, started at its arrival, on a
 * host with one core and one disk.  Prints: activities, seconds, seconds of processor
 * time, mean turn-around in ms.
 * Usage: bench_simgrid HOSTS JOBS
 */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

#include "simgrid_work.h"

namespace sg4 = simgrid::s4u;

static double turnaround_s;
static std::vector<sg4::Host *> hosts;

static void run_job(double cpu_s)
{
	double begin = sg4::Engine::get_clock();
	sg4::Disk *disk = sg4::this_actor::get_host()->get_disks().front();

	for (int i = 0; i < WORK_READS; i++) {
		sg4::this_actor::execute(cpu_s / (WORK_READS + 1) * 1e9);
		disk->read(static_cast<sg_size_t>(WORK_READ_MS * 1e6));
	}
	sg4::this_actor::execute(cpu_s / (WORK_READS + 1) * 1e9);
	turnaround_s += sg4::Engine::get_clock() - begin;
}

static void start_jobs(uint64_t jobs)
{
	struct work w = {1, static_cast<uint32_t>(hosts.size()), 0};

	for (uint64_t k = 0; k < jobs; k++) {
		struct work_job j = work_next(&w);

		sg4::this_actor::sleep_until(j.arrival_ms * 1e-3);
		sg4::Actor::create("j", hosts[j.home], run_job, j.cpu_ms * 1e-3);
	}
}

int main(int argc, char **argv)
{
	sg4::Engine e(&argc, argv);
	uint64_t jobs;
	int n;

	if (argc != 3)
		return 2;
	n = atoi(argv[1]);
	jobs = strtoull(argv[2], nullptr, 10);
	sg4::Engine::set_config("contexts/stack-size:64");
	auto *zone = sg4::create_empty_zone("cluster");
	for (int i = 0; i < n; i++) {
		sg4::Host *h = zone->create_host("h" + std::to_string(i), 1e9);

		h->create_disk("d", 1e9, 1e9)->seal();
		h->seal();
		hosts.push_back(h);
	}
	zone->seal();
	sg4::Actor::create("source", hosts[0], start_jobs, jobs);
	auto begin = std::chrono::steady_clock::now();
	clock_t began = clock();
	e.run();
	clock_t processor = clock() - began;
	std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
	printf("%llu %.6f %.6f %.6f\n", static_cast<unsigned long long>(jobs * (2 * WORK_READS + 1)),
	       took.count(), static_cast<double>(processor) / CLOCKS_PER_SEC,
	       turnaround_s / static_cast<double>(jobs) * 1e3);
	return 0;
}
