"""The app: the list of commands and the options of ``roadstead`` itself."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated, Any

import typer

from cli.lazy import Entry, LazyGroup, Sections

NAME = "roadstead"
COMPLETE = "_ROADSTEAD_COMPLETE"
"""The variable in which a shell asks for completions."""


class Shells(StrEnum):
    """The shells that have completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"
    PWSH = "pwsh"


CONTEXT = {"help_option_names": ["-h", "--help"]}
HELP = "Write a fleet of AKS clusters as YAML in git, and see what Roadstead does with it."
EPILOG = "roadstead COMMAND --help describes a command. ROADSTEAD_URL or a context is the app to ask."

NEW: Sections = {
    "Commands": {
        "cluster": Entry("cli.commands.write.init:new_cluster", "Add the manifest of a cluster."),
        "request-form": Entry(
            "cli.commands.write.init:new_request_form", "Add the issue form for clusters by request."
        ),
    }
}
PRICES: Sections = {
    "Commands": {
        "update": Entry(
            "cli.commands.write.prices:update", "Write the list prices of what the fleet uses to prices.yaml."
        ),
    }
}
ROLLOUT: Sections = {
    "Commands": {
        "list": Entry("cli.commands.watch.rollouts:rollouts", "List the newest rollouts."),
        "show": Entry("cli.commands.watch.rollouts:rollout", "Show the stages of a rollout."),
        "watch": Entry("cli.commands.watch.rollouts:watch", "Follow a rollout until it has ended."),
        "pause": Entry("cli.commands.act.rollout:pause", "Let a rollout finish what runs."),
        "resume": Entry("cli.commands.act.rollout:resume", "Continue a rollout that somebody paused."),
        "approve": Entry("cli.commands.act.rollout:approve", "Let a stage begin that waits for an approval."),
        "skip": Entry("cli.commands.act.rollout:skip", "Take a cluster out of a rollout."),
        "retry": Entry("cli.commands.act.rollout:retry", "Start the failed clusters of a rollout again."),
        "override": Entry(
            "cli.commands.act.rollout:override", "Start clusters outside their windows and in freezes."
        ),
        "abort": Entry("cli.commands.act.rollout:abort", "End a rollout."),
    }
}
SETUP: Sections = {
    "Commands": {
        "github": Entry("cli.commands.run.setup:github", "Register the GitHub App of a fleet."),
        "gitlab": Entry("cli.commands.run.setup:gitlab", "Create the webhook of a fleet at GitLab."),
        "azure-devops": Entry(
            "cli.commands.run.setup:azure_devops", "Create the service hooks of a fleet at Azure DevOps."
        ),
        "entra": Entry("cli.commands.run.setup:entra", "Register the sign-in of a fleet in Entra."),
        "subscription": Entry(
            "cli.commands.run.setup:subscription", "Prepare one more subscription for clusters."
        ),
    }
}
COMMANDS: Sections = {
    "Write a fleet": {
        "init": Entry("cli.commands.write.init:init", "Create a fleet repository."),
        "new": Entry("cli.app:new", "Add a manifest to a fleet repository."),
        "import": Entry(
            "cli.commands.write.import_cluster:import_cluster", "Write the manifest of a cluster in Azure."
        ),
        "versions": Entry(
            "cli.commands.write.versions:versions",
            "Write what an environment has of its channels.",
        ),
        "rebuild": Entry("cli.commands.write.rebuild:rebuild", "Ask for a rebuild in a manifest."),
        "validate": Entry("cli.commands.write.validate:validate", "Check every manifest."),
        "explain": Entry(
            "cli.commands.write.explain:explain", "Show a cluster with the source of each value."
        ),
        "schema": Entry("cli.commands.write.schema:schema", "Print the JSON Schema of a kind, or write all."),
        "plan": Entry(
            "cli.commands.write.plan:plan", "Show what the files would change if they were merged."
        ),
        "prices": Entry("cli.app:prices", "Write the list prices of what the fleet uses."),
    },
    "Watch a fleet": {
        "status": Entry("cli.commands.watch.status:status", "Show the fleet, or one cluster in detail."),
        "wait": Entry("cli.commands.watch.wait:wait", "Wait until clusters are ready or deleted."),
        "why": Entry("cli.commands.watch.cluster:why", "Explain what a cluster waits for, and what to do."),
        "tree": Entry(
            "cli.commands.watch.cluster:tree", "Show what a cluster consists of, and what is unhealthy."
        ),
        "output": Entry(
            "cli.commands.watch.cluster:output", "Show the outputs of a cluster, or one of them."
        ),
        "drift": Entry("cli.commands.watch.drift:drift", "Show what differs between git and Azure."),
        "ready": Entry("cli.commands.watch.ready:ready", "Show what blocks an upgrade of Kubernetes."),
        "cost": Entry("cli.commands.watch.cost:cost", "Show what the fleet is listed at for a month."),
        "events": Entry("cli.commands.watch.cluster:events", "List the events of a cluster."),
        "plans": Entry("cli.commands.watch.log:plans", "List the newest plans."),
        "log": Entry("cli.commands.watch.log:log", "List the commits after those that an environment has."),
        "audit": Entry("cli.commands.watch.audit:audit", "List who did what."),
    },
    "Act on a fleet": {
        "approve": Entry(
            "cli.commands.act.approve:approve",
            "Approve the deletes and releases of a plan, or a correction of drift.",
        ),
        "accept": Entry(
            "cli.commands.act.approve:accept", "Accept what somebody added to a cluster in Azure."
        ),
        "rollout": Entry("cli.app:rollout", "Show a rollout, pause it, or approve a stage."),
        "promote": Entry(
            "cli.commands.act.pulls:promote", "Give an environment what is proven in another one."
        ),
        "try": Entry("cli.commands.act.orders:try_pull", "Try a pull request on a cluster for some hours."),
        "request": Entry("cli.commands.act.pulls:request", "Ask for a cluster for a time."),
        "extend": Entry(
            "cli.commands.act.orders:extend", "Put the end of a cluster off, or hold the cluster."
        ),
        "rollback": Entry("cli.commands.act.pulls:rollback", "Propose to roll a node pool back."),
        "suspend": Entry("cli.commands.act.pulls:suspend", "Propose to suspend clusters until a time."),
        "takeover": Entry(
            "cli.commands.act.takeover:takeover", "Take over clusters that another app manages."
        ),
        "pause": Entry("cli.commands.act.orders:pause", "Stop everything that the app starts by itself."),
        "resume": Entry("cli.commands.act.orders:resume", "End a pause."),
        "wake": Entry("cli.commands.act.orders:wake", "Start a cluster that sleeps."),
        "sleep": Entry("cli.commands.act.orders:sleep", "Stop a cluster that is awake."),
        "postpone": Entry("cli.commands.act.orders:postpone", "Keep a cluster awake until a time."),
        "replay": Entry("cli.commands.act.replay:replay", "Start failed jobs again."),
        "refresh": Entry("cli.commands.act.refresh:refresh", "Compare clusters with Azure now."),
        "notify": Entry("cli.commands.act.notify:notify", "List the routes of notifications, or test one."),
        "sync": Entry("cli.commands.act.orders:sync", "Plan a commit now whose webhook was lost."),
    },
    "Run the app": {
        "deploy": Entry("cli.commands.run.deploy:deploy", "Create or change the apps of a fleet in Azure."),
        "setup": Entry("cli.app:setup", "Set up the git host, the sign-in, or one more subscription."),
        "upgrade": Entry(
            "cli.commands.run.upgrade:upgrade", "Give the three apps another version of Roadstead."
        ),
        "health": Entry("cli.commands.run.health:health", "Show whether the app can work."),
        "doctor": Entry("cli.commands.run.doctor:doctor", "Have each app examine itself."),
        "contexts": Entry("cli.commands.run.contexts:contexts", "List the contexts of the file."),
        "dead-letters": Entry(
            "cli.commands.run.dead_letters:dead_letters", "List, replay or dismiss dead letters."
        ),
        "mcp": Entry("cli.commands.run.mcp:mcp", "Let an assistant read the fleet."),
    },
}


def _group(of: Sections, **options: Any) -> typer.Typer:
    """Return a group of these commands."""

    class CommandGroup(LazyGroup):
        sections = of

    look: dict[str, Any] = {"rich_markup_mode": None, "add_completion": False, "context_settings": CONTEXT}
    return typer.Typer(cls=CommandGroup, **look, **options)


def _below(name: str, of: Sections) -> typer.Typer:
    """Return the group that is a command of its own, with the summary of its entry as its help."""
    summary = next(entries[name].summary for entries in COMMANDS.values() if name in entries)
    found = _group(of)
    found.callback(help=summary)(lambda: None)
    return found


app = _group(COMMANDS, pretty_exceptions_enable=False, epilog=EPILOG)
rollout = _below("rollout", ROLLOUT)
setup = _below("setup", SETUP)
prices = _below("prices", PRICES)
new = _below("new", NEW)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"roadstead {version('roadstead')}")
        raise typer.Exit


def _choose_context(name: str) -> None:
    if name:
        os.environ["ROADSTEAD_CONTEXT"] = name


def _install_completion(shell: Shells | None) -> None:
    if shell is not None:
        from typer._completion_shared import install

        name, file = install(shell.value, NAME)
        typer.echo(f"Installed the completion for {name} in {file}. Open a new shell.")
        raise typer.Exit


def _show_completion(shell: Shells | None) -> None:
    if shell is not None:
        from typer._completion_shared import get_completion_script

        script = get_completion_script(prog_name=NAME, complete_var=COMPLETE, shell=shell.value)
        typer.echo(script)
        raise typer.Exit


@app.callback(help=HELP)
def _roadstead(
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    _context: Annotated[
        str,
        typer.Option(
            "--context",
            metavar="NAME",
            callback=_choose_context,
            help="The context of the fleet to ask, before the command (default: ROADSTEAD_CONTEXT).",
        ),
    ] = "",
    _install: Annotated[
        Shells | None,
        typer.Option(
            "--install-completion",
            metavar="SHELL",
            callback=_install_completion,
            is_eager=True,
            help=f"Install completion for a shell: {', '.join(Shells)}.",
        ),
    ] = None,
    _show: Annotated[
        Shells | None,
        typer.Option(
            "--show-completion",
            metavar="SHELL",
            callback=_show_completion,
            is_eager=True,
            help="Print the completion script of a shell.",
        ),
    ] = None,
) -> None:
    pass
