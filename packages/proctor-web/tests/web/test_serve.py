"""`proctor serve` and `proctor users`: from a folder to a server, and who gets in."""

from __future__ import annotations

import json
import signal
import socket
import ssl
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import create_engine, text

from proctor_web import Listening, bound, open_review
from proctor_web.review import KEY_FILE
from proctor_web.site import signing_key
from tests.support.program import proctor
from tests.support.web_folder import come_in, invitations, review_folder, serving
from tests.support.web_site import browser, csrf_of


def test_people_are_added_changed_and_shut_out(tmp_path: Path) -> None:
    folder = review_folder(tmp_path / "review", more="address: https://review.hospital.org\n")
    done = proctor("serve", "users", "add", folder, "Anna", "--language", "de")
    assert done.stdout.startswith("https://review.hospital.org/invitation/")
    assert done.stderr.startswith(f"{folder / 'review.sqlite'} is new. If the server has another store, write that one")
    assert proctor("serve", "users", "invite", folder, "anna").stdout != done.stdout
    assert proctor("serve", "users", "role", folder, "anna", "--role", "adjudicator").returncode == 0
    assert proctor("serve", "users", "disable", folder, "anna").stdout == "anna is logged out and may not log in\n"
    done = proctor("serve", "users", "list", folder, "--format", "csv")
    listed = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert listed[0] == "name,role,pseudonym,language,state,last login"
    assert listed[1].startswith("anna,adjudicator,R-")
    assert ",de,disabled since " in listed[1]
    assert proctor("serve", "users", "enable", folder, "anna").stdout == "anna may log in again\n"
    shown = proctor("serve", "users", "trail", folder, "--format", "json")
    entries = json.loads(shown.stdout)
    actions = ["add account", "invite", "invite", "set role", "disable", "enable"]
    assert [entry["action"] for entry in entries] == actions
    assert entries[3]["detail"] == '{"from": "reviewer", "to": "adjudicator"}'
    assert shown.stderr.startswith("all entries are as recorded; the newest hash is ")


def test_a_person_is_erased_after_being_shut_out(tmp_path: Path) -> None:
    folder = review_folder(tmp_path / "review")
    proctor("serve", "users", "add", folder, "anna")
    refused = proctor("serve", "users", "erase", folder, "anna")
    assert refused.returncode == 1
    assert "found 'anna', who may log in, expected a disabled account (disable it first" in refused.stderr
    proctor("serve", "users", "disable", folder, "anna")
    (listed,) = json.loads(proctor("serve", "users", "list", folder, "--format", "json").stdout)
    done = proctor("serve", "users", "erase", folder, "anna")
    assert done.stdout == f"anna is erased; readings and trail keep {listed['pseudonym']}\n"
    (left,) = json.loads(proctor("serve", "users", "list", folder, "--format", "json").stdout)
    assert left["name"] == left["pseudonym"] == listed["pseudonym"]
    trail = proctor("serve", "users", "trail", folder, "--format", "json")
    assert [entry["action"] for entry in json.loads(trail.stdout)] == ["add account", "invite", "disable", "erase"]
    assert "anna" not in trail.stdout
    assert trail.stderr.startswith("all entries are as recorded")


def test_a_trail_that_somebody_changed_is_told(tmp_path: Path) -> None:
    folder = review_folder(tmp_path / "review")
    invitations(folder)
    engine = create_engine(f"sqlite:///{folder / 'review.sqlite'}")
    with engine.begin() as connection:
        connection.execute(text("drop trigger trail_stay_on_update"))
        connection.execute(text("update trail set subject = 'account 9 (eve)' where id = 3"))
    engine.dispose()
    done = proctor("serve", "users", "trail", folder)
    assert done.returncode == 1
    assert done.stderr == "entry 3 was changed, or does not follow the one before\n"


REFUSED: dict[tuple[str, ...], str] = {
    ("add", "anna"): "name: found 'anna', which there is already, expected a new name",
    ("add", "a b"): "name: found 'a b', expected letters, digits and . @ + - _, at most 80",
    (
        "add",
        "ben",
        "--role",
        "root",
    ): "role: found 'root', expected one of organiser, reviewer, annotator, adjudicator, participant, public",
    ("add", "ben", "--language", "fr"): "language: found 'fr', expected one of de, en",
    ("invite", "ben"): "name: found no account 'ben', expected one of anna",
    ("role", "ben", "--role", "organiser"): "name: found no account 'ben', expected one of anna",
}


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_what_can_not_be_is_refused_in_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    folder = review_folder(tmp_path / "review")
    assert proctor("serve", "users", "add", folder, "anna").returncode == 0
    done = proctor("serve", "users", words[0], folder, *words[1:])
    assert (done.returncode, done.stderr) == (1, f"proctor: {REFUSED[words]}\n")


def test_a_folder_without_a_review_gets_no_store(tmp_path: Path) -> None:
    for words in (("serve", "users", "add", tmp_path, "anna"), ("serve", tmp_path)):
        done = proctor(*words)
        assert done.returncode == 1
        assert "review.yaml" in done.stderr
    assert list(tmp_path.iterdir()) == []


UNSAFE: dict[tuple[str, ...], str] = {
    ("--host", "0.0.0.0"): "--host: found 0.0.0.0, expected --tls-cert and --tls-key, or --proxy",
    ("--host", "::"): "--host: found ::, expected --tls-cert and --tls-key, or --proxy",
    ("--tls-cert", "cert.pem"): "--tls-cert, --tls-key: found one of them, expected both",
    ("--proxy", "127.0.0.1"): "--proxy: found '', expected an address: https://",
    ("--proxy", "nginx"): "--proxy: found 'nginx', expected addresses or networks such as 127.0.0.1",
    ("--proxy", "127.0.0.1, proxy.hospital.org"): "--proxy: found 'proxy.hospital.org', expected addresses",
    ("--proxy", "10.0.0.0/8,"): "--proxy: found '', expected addresses",
}


@pytest.mark.parametrize("options", UNSAFE, ids=" ".join)
def test_passwords_never_go_through_a_network_unencrypted(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = proctor("serve", review_folder(tmp_path / "review"), *options)
    assert done.returncode == 2
    assert UNSAFE[options] in done.stderr


def test_a_server_starts_with_its_studies_and_ends_when_told(tmp_path: Path) -> None:
    folder = review_folder(tmp_path / "review")
    refused = proctor("serve", folder)
    assert "found 'anna', expected an account" in refused.stderr
    links = invitations(folder)
    with serving(folder) as (process, address):
        with httpx2.Client(base_url=address, headers={"accept": "text/html"}) as client:
            come_in(client, links["anna"])
            home = client.get("/")
            assert "0 of 6 submitted" in home.text
            assert "server" not in home.headers
            assert client.get(links["ben"] + "x").status_code == 404
        busy = proctor("serve", folder, "--port", address.rpartition(":")[2])
        assert "--host, --port: found 127.0.0.1 port" in busy.stderr
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(60)
        assert (out, err) == ("", "")
    review, (again,) = open_review(folder)
    review.engine.dispose()
    assert (again.items.new, again.items.same, again.assigned) == (0, 6, 0)
    assert (folder / KEY_FILE).stat().st_mode & 0o777 == 0o600


def test_pages_by_https_with_a_certificate(tmp_path: Path) -> None:
    folder = review_folder(tmp_path / "review", more="address: https://localhost\n")
    links = invitations(folder)
    cert, key = certificate(tmp_path)
    trusted = ssl.create_default_context(cafile=str(cert))
    with serving(folder, "--host", "localhost", "--tls-cert", str(cert), "--tls-key", str(key)) as (_, address):
        assert address.startswith("https://localhost:")
        with httpx2.Client(base_url=address, verify=trusted, headers={"accept": "text/html"}) as client:
            come_in(client, links["anna"])
            assert [cookie.name for cookie in client.cookies.jar if cookie.secure] == [
                "__Host-proctor-form",
                "__Host-proctor",
            ]
            assert client.get("/").headers["strict-transport-security"]


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate of localhost, and its key."""
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "cert.pem", folder / "key.pem"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    return files


def test_behind_a_proxy_browsers_names_and_addresses_count(tmp_path: Path) -> None:
    folder = review_folder(tmp_path / "review", more="address: https://review.hospital.org\n")
    invitations(folder)
    review, _ = open_review(folder, listening=Listening(proxy="127.0.0.1"))
    assert review.tls
    assert "review.hospital.org" in review.hosts
    client = browser(review)
    client.base_url = "https://review.hospital.org"
    own = {"origin": "https://review.hospital.org"}
    data = {"name": "anna", "password": "wrong kettle 7"}
    page = client.get("/login")
    assert client.post("/login", data=data | {"csrf": csrf_of(page)}, headers=own).status_code == 401
    inside = own | {"host": "127.0.0.1"}  # a proxy that does not hand the name on
    assert client.post("/login", data=data | {"csrf": csrf_of(page)}, headers=inside).status_code == 401
    review.engine.dispose()


def test_every_name_of_the_machine_itself_is_its_own(tmp_path: Path) -> None:
    folder = review_folder(tmp_path / "review", more="address: https://review.hospital.org:8443\n")
    invitations(folder)
    review, _ = open_review(folder, listening=Listening(host="::1"))
    client = browser(review)
    for host in ("localhost:8000", "127.0.0.1", "[::1]:8000", "review.hospital.org:8443"):
        assert client.get("/login", headers={"host": host}).status_code == 200
    for host in ("::1", "[::2]:8000", "hospital.org", "0.0.0.0"):
        assert client.get("/login", headers={"host": host}).status_code == 400
    review.engine.dispose()


def test_a_review_in_postgresql(tmp_path: Path, postgres_url: str) -> None:
    folder = review_folder(tmp_path / "review")
    for name, role in (("anna", "reviewer"), ("ben", "reviewer"), ("cleo", "adjudicator")):
        assert proctor("serve", "users", "add", folder, name, "--role", role, "--store", postgres_url).returncode == 0
    link = proctor("serve", "users", "invite", folder, "anna", "--store", postgres_url).stdout.strip()
    review, updates = open_review(folder, postgres_url)
    assert updates[0].assigned == 18
    assert not (folder / "review.sqlite").exists()
    client = browser(review)
    client.base_url = "http://localhost"
    come_in(client, "/invitation/" + link.rpartition("/")[2])
    assert "0 of 6 submitted" in client.get("/").text
    review.engine.dispose()


def test_a_broken_line_keeps_no_running_review_from_starting_again(tmp_path: Path) -> None:
    """After the machine was restarted at night, say: those who read can go on."""
    folder = review_folder(tmp_path / "review")
    links = invitations(folder)
    broken = "{not json\n" + (folder / "items.jsonl").read_text()
    whole = (folder / "items.jsonl").read_text()
    (folder / "items.jsonl").write_text(broken)
    first = proctor("serve", folder)
    assert (first.returncode, "items.jsonl: line 1" in first.stderr) == (1, True), "there is nothing to serve yet"
    (folder / "items.jsonl").write_text(whole)
    assert proctor("review", "update", folder).returncode == 0
    (folder / "items.jsonl").write_text(broken)
    assert proctor("review", "update", folder).returncode == 1
    with serving(folder) as (process, address):
        with httpx2.Client(base_url=address, headers={"accept": "text/html"}) as client:
            come_in(client, links["anna"])
            assert "0 of 6 submitted" in client.get("/").text
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(60)
    assert "questions is not updated, its 6 items stay as they are: " in err
    assert "items.jsonl: line 1" in err


def test_the_key_is_made_once_and_a_short_one_is_refused(tmp_path: Path) -> None:
    key = signing_key(tmp_path / KEY_FILE)
    assert len(key) >= 43
    assert signing_key(tmp_path / KEY_FILE) == key
    (tmp_path / KEY_FILE).write_text("short\n")
    from proctor.core import InputError

    with pytest.raises(InputError, match="found 5 characters, expected a key of 32 or more"):
        signing_key(tmp_path / KEY_FILE)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_answers_are_sent_at_once(host: str) -> None:
    """asyncio sets TCP_NODELAY on connections of sockets that are said to be TCP's; others wait 40 ms a page."""
    with bound(Listening(host, 0)) as opened:
        assert opened.proto == socket.IPPROTO_TCP


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    folder = review_folder(tmp_path / "review")
    invitations(folder)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        done = proctor("serve", folder, "--port", str(other.getsockname()[1]))
    assert done.returncode == 1
    assert "Address already in use, expected an address of this machine that is free" in done.stderr


def test_what_is_neither_a_review_nor_a_challenge_is_told(tmp_path: Path) -> None:
    expected = "expected the folder of a review, or of a challenge (proctor challenge new)"
    for folder, found in ((tmp_path, "no review.yaml and no challenge.yaml"), (tmp_path / "none", "no such folder")):
        done = proctor("serve", folder)
        assert (done.returncode, done.stderr) == (1, f"proctor: {folder}: found {found}, {expected}\n")
