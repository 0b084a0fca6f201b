/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See address_limit.h. */
#include "agent/base/address_limit.h"

#include <netinet/in.h>
#include <string.h>

void address_limit_key_of(const struct sockaddr *address, uint8_t key[ADDRESS_LIMIT_KEY])
{
	memset(key, 0, ADDRESS_LIMIT_KEY);
	if (address->sa_family == AF_INET) {
		memcpy(key, &((const struct sockaddr_in *)address)->sin_addr, 4);
	} else if (address->sa_family == AF_INET6) {
		const struct in6_addr *six = &((const struct sockaddr_in6 *)address)->sin6_addr;

		memcpy(key, six->s6_addr + (IN6_IS_ADDR_V4MAPPED(six) ? 12 : 0),
		       IN6_IS_ADDR_V4MAPPED(six) ? 4 : 8);
	}
}

int address_limit_enter(struct address_limit *sources, const struct sockaddr *address)
{
	uint8_t key[ADDRESS_LIMIT_KEY];
	int unused = -1;

	address_limit_key_of(address, key);
	for (int i = 0; i < ADDRESS_LIMIT_MAX; i++) {
		struct source *s = &sources->all[i];

		if (!s->held) {
			unused = unused < 0 ? i : unused;
		} else if (!memcmp(s->address, key, sizeof(key))) {
			s->held++;
			return i;
		}
	}
	if (unused < 0)
		return -1;
	memcpy(sources->all[unused].address, key, sizeof(key));
	sources->all[unused].held = 1;
	return unused;
}

void address_limit_leave(struct address_limit *sources, int source)
{
	sources->all[source].held--;
}

int address_limit_most(const struct address_limit *sources)
{
	int most = -1;

	for (int i = 0; i < ADDRESS_LIMIT_MAX; i++)
		if (sources->all[i].held &&
		    (most < 0 || sources->all[i].held > sources->all[most].held))
			most = i;
	return most;
}
