"""The small Flux decrypts what the real sops encrypted, with the key that a Kustomization names."""

from __future__ import annotations

import base64

from localcloud.keyvault.example_secrets import AGE_KEY
from localcloud.kubernetes.world.object_store import At
from tests.support.small_flux import KINDS, FluxCluster
from tests.support.sops_files import OTHERS, encrypted

SECRET = (
    "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: team}\nstringData: {password: hidden}\n"
)
NAMESPACE = b"apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
DECRYPTION = {"provider": "sops", "secretRef": {"name": "sops-age"}}


def cluster(*, key: str = AGE_KEY, **files: bytes) -> FluxCluster:
    made = FluxCluster({f"clusters/alpha/{name}.yaml": content for name, content in files.items()})
    made.install()
    made.source()
    data = {"age.agekey": base64.b64encode(key.encode()).decode()}
    metadata = {"name": "sops-age", "namespace": "flux-system"}
    made.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    return made


def password(made: FluxCluster) -> str | None:
    found = made.world.find(At(KINDS["Secret"], "login", "team"))
    return base64.b64decode(found["data"]["password"]).decode() if found else None


def test_an_encrypted_secret_is_applied_as_it_was_before() -> None:
    file = encrypted(SECRET)
    assert b"hidden" not in file
    made = cluster(ns=NAMESPACE, login=file)
    made.sync(decryption=DECRYPTION)
    made.let_time_pass()
    assert made.ready()[0] == "True"
    assert password(made) == "hidden"
    assert "sops" not in made.world.get(At(KINDS["Secret"], "login", "team"))


def test_an_entry_of_a_secret_may_be_a_document_of_sops() -> None:
    inner = base64.b64encode(encrypted("user=root\n", kind="dotenv")).decode()
    outer = SECRET.replace("stringData: {password: hidden}", f"data: {{file.env: {inner}}}")
    made = cluster(ns=NAMESPACE, login=outer.encode())
    made.sync(decryption=DECRYPTION)
    made.let_time_pass()
    found = made.world.get(At(KINDS["Secret"], "login", "team"))
    assert base64.b64decode(found["data"]["file.env"]) == b"user=root\n"


def test_with_another_key_nothing_of_the_commit_is_applied() -> None:
    made = cluster(ns=NAMESPACE, login=encrypted(SECRET, OTHERS))
    made.sync(decryption=DECRYPTION)
    made.let_time_pass()
    status, reason, message = made.ready()
    assert (status, reason) == ("False", "BuildFailed")
    problem = "failed to decrypt and format 'team/login' Secret data: cannot get sops data key: "
    assert message.startswith(f"decryption failed for 'Secret.v1.[noGrp]/login': {problem}")
    assert made.world.find(At(KINDS["Namespace"], "team", "")) is None


def test_a_secret_with_keys_that_does_not_exist_is_named() -> None:
    made = cluster(login=encrypted(SECRET))
    made.sync(decryption={"provider": "sops", "secretRef": {"name": "no-such"}})
    made.let_time_pass()
    assert made.ready() == ("False", "BuildFailed", 'secrets "no-such" not found')


def test_without_decryption_the_encrypted_object_is_refused_by_the_api() -> None:
    made = cluster(ns=NAMESPACE, login=encrypted(SECRET))
    made.sync()
    made.let_time_pass()
    assert made.ready()[0] == "False"
    assert password(made) is None
