"""Azure as Roadstead uses it: one verb, ``Azure.call``, and one small class for each operation.

A class declares what every layer needs to know of its operation, and no layer repeats it:

- the adapter calls ``sdk`` of the client library of ``service`` with the fields as arguments, or sends
  ``request``;
- the lease guard checks the lease before an operation that ``writes``, and the age of ``relies_on``;
- the rate limiter takes a token of each of ``limits``, and records the request id of each write;
- the local cloud answers with the method of its Azure world that has the operation's ``name``;
- fault injection and the tests see the operation itself.

To add an operation, add its class to a module of this package, and call it. CONTRIBUTING.md has an example.
Everybody imports it from here.
"""

from __future__ import annotations

from shared.ports.azure.calls import *
from shared.ports.azure.clusters import *
from shared.ports.azure.companions import *
from shared.ports.azure.costs import *
from shared.ports.azure.offers import *
