/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See tick.h. */
#include "agent/base/tick.h"

#include "user/clock.h"

/* Empties the slots that have passed since the last tick: their minute is over. */
static void tick_turn(struct tick *tick, uint64_t now_ns)
{
	uint64_t slot = now_ns / (TICK_SLOT_S * CLOCK_NS_PER_S);
	uint64_t passed = slot - tick->slot;

	for (uint64_t i = 0; i < passed && i < TICK_SLOTS; i++)
		tick->late_ns[(slot - i) % TICK_SLOTS] = 0;
	tick->slot = slot;
}

static void tick_fire(void *arg)
{
	struct tick *tick = arg;
	uint64_t now = loop_boot_ns(tick->loop), due = tick->timer.due_ns, most = 0;
	uint64_t late = loop_late_ns(tick->loop, &tick->timer), *in_slot;

	tick_turn(tick, now);
	in_slot = &tick->late_ns[tick->slot % TICK_SLOTS];
	if (late > *in_slot)
		*in_slot = late;
	for (unsigned i = 0; i < TICK_SLOTS; i++)
		if (tick->late_ns[i] > most)
			most = tick->late_ns[i];
	tick->counters->ticks++;
	tick->counters->tick_late_ms = most / CLOCK_NS_PER_MS;
	/* The next tick that is not yet missed, counted from when this one was due. */
	due += TICK_NS;
	if (due <= now)
		due = now + TICK_NS - (now - due) % TICK_NS;
	loop_start(tick->loop, &tick->timer, due - now);
}

void tick_start(struct tick *tick, struct loop *loop, struct counters *counters, uint64_t with_ns)
{
	uint64_t now = loop_boot_ns(loop), first = TICK_NS;

	*tick = (struct tick){.loop = loop, .counters = counters};
	tick->timer = (struct loop_timer){.fire = tick_fire, .arg = tick, .lax_ns = TICK_LAX_NS};
	tick_turn(tick, now);
	if (with_ns > now)
		first = (with_ns - now - 1) % TICK_NS + 1;
	loop_start(loop, &tick->timer, first);
}
