# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""All kinds of jobs, by the name that a plan has for them."""
from detached import DetachedJob
from jobs import PipedJob
from restartable import RestartableJob

KINDS = {"piped": PipedJob, "detached": DetachedJob, "restartable": RestartableJob}
