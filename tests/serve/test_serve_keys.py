"""An admin makes and revokes keys over HTTP, for their own tenant and nobody else's."""

from __future__ import annotations

import httpx
import pytest
from serving import Served, error_of

KEYS = "/api/v1/keys"


def test_a_key_made_over_http_works_until_it_is_revoked(served: Served) -> None:
    with served.client("admin") as client:
        made = client.post(KEYS, json={"user": "kay", "roles": ["editor"], "expires_days": 3})
        assert made.status_code == 201
        key = made.json()
        assert (key["tenant"], key["user"], key["roles"]) == ("acme", "kay", ["editor"])
        assert key["expires_at"] and not key["revoked_at"]
        listed = client.get(KEYS)
        assert key["key"] not in listed.text  # told once
        assert key["id"] in [one["id"] for one in listed.json()["keys"]]
        with httpx.Client(base_url=served.url, verify=False) as other:
            bearer = {"Authorization": f"Bearer {key['key']}"}
            assert other.get("/api/v1/collections", headers=bearer).status_code == 200
            assert client.delete(f"{KEYS}/{key['id']}").status_code == 204
            assert other.get("/api/v1/collections", headers=bearer).status_code == 401
        assert client.delete(f"{KEYS}/{key['id']}").status_code == 204  # again changes nothing
        (after,) = [one for one in client.get(KEYS).json()["keys"] if one["id"] == key["id"]]
        assert after["revoked_at"]
        events = client.get("/api/v1/audit").json()["events"]
    noted = [one["kind"] for one in events if one["facts"].get("key") == key["id"]]
    assert {"key_created", "key_revoked"} <= set(noted)
    assert key["key"].removeprefix(f"carrel_{key['id']}_") not in str(events)


def test_a_key_without_a_user_is_one_of_its_own(served: Served) -> None:
    with served.client("admin") as client:
        users = {client.post(KEYS, json={}).json()["user"] for _ in range(2)}
    assert len(users) == 2


def test_keys_of_another_tenant_are_absent(served: Served) -> None:
    foreign = served.services.keys.create("zoo", user="zed")[1]
    with served.client("admin") as client:
        assert {one["tenant"] for one in client.get(KEYS).json()["keys"]} == {"acme"}
        for key_id in (foreign.id, "0" * 12, "carrel_"):
            response = client.delete(f"{KEYS}/{key_id}")
            assert response.status_code == 404
            assert key_id not in response.text
    assert not {key.id: key for key in served.services.keys.listed("zoo")}[foreign.id].revoked_at


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"tenant": "zoo"}, 422),
        ({"user": "a/b"}, 400),
        ({"user": "x" * 65}, 422),
        ({"roles": ["a b"]}, 400),
        ({"roles": [""]}, 400),
        ({"roles": "admin"}, 422),
        ({"expires_days": 0}, 422),
        ({"expires_days": 10**9}, 422),
        ({"expires_days": "soon"}, 422),
    ],
)
def test_a_bad_key_is_not_made(served: Served, body: dict[str, object], status: int) -> None:
    before = len(served.services.keys.listed("acme"))
    with served.client("admin") as client:
        response = client.post(KEYS, json=body)
    assert response.status_code == status, response.text
    assert error_of(response)["rule"]
    assert len(served.services.keys.listed("acme")) == before
