"""`carrel eval opinions`: whether opinions tell what else their users like."""

from __future__ import annotations

from cli.arguments import DEFAULT_TENANT, Data, Json, Set, Tenant
from cli.options import opened, settings_from
from cli.terminal.output import counted, print_json, stdout
from core.auth import checked_name
from serve.opinions import evaluate_opinions


def opinions(
    tenant: Tenant = DEFAULT_TENANT, data: Data = None, changes: Set = None, as_json: Json = False
) -> None:
    """Leave out each like and look for it by its user's others, as a server does daily."""
    with opened(settings_from(data, changes)) as session:
        found = evaluate_opinions(session, checked_name("tenant", tenant))
    if as_json:
        print_json(found)
        return
    if not found["users"]:
        stdout().print("nobody has likes beside other documents that were listed")
        return
    bound = "" if found["interval"] is None else " ({:.3f} to {:.3f})".format(*found["interval"])
    of = f"{counted(found['likes'], 'like')} of {counted(found['users'], 'user')}"
    stdout().print(f"AUC {found['auc']:.3f}{bound}, {of}; .5 is chance")
