# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""All kinds of jobs, by their name in a plan."""
from detached import DetachedJob
from jobs import PipedJob
from restartable import RestartableJob

KINDS = {"piped": PipedJob, "detached": DetachedJob, "restartable": RestartableJob}
