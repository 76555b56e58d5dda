"""The composition root: settings become ports, ports become functions. Nothing else happens here.

A host imports this file whenever it starts an instance, which then runs some of the functions alone. So a
start reads the settings, and what triggers each function. Its first call imports what a function consists of.
"""

from __future__ import annotations

import os
from secrets import token_hex

from shared.frozen import replace
from shared.process_memory import collect_rarely, lasting

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # none is looked for among the libraries
with lasting():
    import azure.functions as func

    from handlers.apps import Functions
    from handlers.triggers import add_functions
    from shared import logs
    from shared.configuration.load_settings import load_settings
    from shared.configuration.settings import Settings
    from shared.masking import Masker, platform_secrets

_ONLY_HERE = token_hex(32)
"""Signs forms where no setting can: another instance refuses them, and says to send them again."""


def _functions(settings: Settings, mask: Masker, app: func.FunctionApp) -> Functions:
    """Return the functions on the production ports."""
    from handlers.sign_in import SignIn
    from shared.app.door import watched
    from shared.configuration.production import Adapters, build_ports
    from shared.ports.masked import masked

    # The worker indexes after the start: the library keeps the names that it has found.
    built = build_ports(settings)
    process = replace(built.process, functions=lambda: app.functions_bindings or ())
    return Functions(
        watched(masked(replace(built, process=process), mask)),
        SignIn(settings.sign_in, settings.website_auth_enabled, settings.api_keys),
        git_host=settings.git_host,
        webhook_secrets=settings.webhook_secrets,
        form_secrets=settings.form_secrets or (_ONLY_HERE,),
        approval_keys={name: key.get_secret_value() for name, key in settings.approval_keys.items()},
        sweep_schedule=settings.sweep_schedule,
        check_schedule=settings.check_schedule,
        github_setup=Adapters(settings).github_setup(),
    )


def build_app(settings: Settings) -> func.FunctionApp:
    """Return the function app with the functions of its settings."""
    mask = Masker((*settings.secrets, *platform_secrets(os.environ)))
    logs.configure(mask, settings.roadstead_fleet)
    app = func.FunctionApp()
    add_functions(app, settings, lambda: _functions(settings, mask, app).part)
    return app


collect_rarely()
app = build_app(load_settings())
