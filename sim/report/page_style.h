/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The style and the script of the page.  The script only hides what the reader does not ask for:
 * without it the page shows everything, and no form.
 */
#ifndef SIM_REPORT_PAGE_STYLE_H
#define SIM_REPORT_PAGE_STYLE_H

extern const char page_style[], page_script[];

#endif
