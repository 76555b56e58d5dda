"""The objects of the HTTP API, version v1alpha, as the server writes them and the command reads them.

Times are ISO 8601 in UTC. Lists of clusters come in pages: ``next`` is the ``after`` of the next page, None
on the last one. These modules import nothing else, so that the command starts quickly.
"""

from __future__ import annotations

from shared.app.api.schema.acts import *
from shared.app.api.schema.cluster_details import *
from shared.app.api.schema.clusters import *
from shared.app.api.schema.costs import *
from shared.app.api.schema.fleet import *
from shared.app.api.schema.plans import *
from shared.app.api.schema.rollouts import *
