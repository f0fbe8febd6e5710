"""Requests and responses: web servers over persistent connections, stores, databases."""

from __future__ import annotations

from tcptrace_lab.lab.corpus.programs.program import Program
from tcptrace_lab.lab.corpus.programs.settings import APACHE, HAPROXY, LIGHTTPD, NGINX, SQUID, nginx

_PAGE = "http://{address}:{port}/file.bin"
_AB = f"ab -q -k -n 100000 -t 3 -c 2 {_PAGE}"
_REDIS = "redis-server --port {port} --bind {address} --save '' --dir {folder} --protected-mode no"
_REDIS_LOAD = "timeout -s INT 4 redis-benchmark -h {address} -p {port} -q"
_MEMCACHED = "memcached -u root -p {port} -l {address}"
_AS_POSTGRES = "setpriv --reuid postgres --regid postgres --clear-groups"
_DATA = "{folder}/data"
_MAKE_DATABASE = f"install -d -o postgres -m 700 {_DATA}; {_AS_POSTGRES} initdb -N -A trust -D {_DATA} >/dev/null"
_POSTGRES = f"{_AS_POSTGRES} postgres -D {_DATA} -h {{address}} -p {{port}} -k {{folder}}/data -c fsync=off -c wal_level=replica"
_OPEN_TO_ALL = f"echo host all all 0.0.0.0/0 trust >>{_DATA}/pg_hba.conf; echo host replication all 0.0.0.0/0 trust >>{_DATA}/pg_hba.conf"
_PGBENCH = "env PGDATABASE=postgres pgbench -h {address} -p {port} -U postgres"
_MARIADB_DATA = "mariadb-install-db --user=root --datadir={folder}/data --auth-root-authentication-method=normal --skip-test-db >/dev/null"
_MARIADB = (
    "mariadbd --no-defaults --user=root --datadir={folder}/data --bind-address={address} --port={port} "
    "--socket={folder}/sock --pid-file={folder}/pid"
)
_OPEN_MARIADB = "mariadb -S {folder}/sock -e \"CREATE USER lab@'%'; GRANT ALL ON *.* TO lab@'%'; CREATE DATABASE lab\""


def _redis(options: str, before: str = "") -> Program:
    return Program("redis", _REDIS, f"{_REDIS_LOAD} {options}; true", "redis-server redis-tools", before=before, needs=("redis-benchmark",))


def _postgres(client: str, before: str = f"{_PGBENCH} -i -q", needs: tuple[str, ...] = ("pgbench",)) -> Program:
    prepare = f"{_MAKE_DATABASE}; {_OPEN_TO_ALL}"
    return Program("postgresql", _POSTGRES, client, "postgresql", prepare=prepare, before=before, needs=("postgres", "initdb", *needs))


def _mariadb(client: str, before: str = "") -> Program:
    commands = "; ".join(filter(None, (_OPEN_MARIADB, before)))
    return Program("mariadb", _MARIADB, client, "mariadb-server mariadb-client", prepare=_MARIADB_DATA, before=commands)


REQUESTS = {
    "nginx-wrk-small": Program("nginx", NGINX, f"wrk -t 1 -c 2 -d 3s {_PAGE}", "nginx wrk", 600, nginx()),
    "nginx-wrk-pages": Program("nginx", NGINX, f"wrk -t 1 -c 4 -d 3s {_PAGE}", "nginx wrk", 40_000, nginx()),
    "nginx-ab-keep-alive": Program("nginx", NGINX, _AB, "nginx apache2-utils", 12_000, nginx()),
    "nginx-ab-new-connections": Program("nginx", NGINX, f"ab -q -n 100000 -t 3 -c 2 {_PAGE}", "nginx apache2-utils", 8_000, nginx()),
    "nginx-h2load": Program("nginx", NGINX, f"h2load -D 3 -c 1 -m 8 {_PAGE}", "nginx nghttp2-client", 15_000, nginx(listen="http2")),
    "nginx-h2load-one-at-a-time": Program(
        "nginx", NGINX, f"h2load -D 3 -c 1 -m 1 {_PAGE}", "nginx nghttp2-client", 4_000, nginx(listen="http2")
    ),
    "lighttpd-ab": Program("lighttpd", "lighttpd -D -f {folder}/lighttpd.conf", _AB, "lighttpd apache2-utils", 10_000, LIGHTTPD),
    "apache-wrk": Program(
        "apache", "apache2 -DFOREGROUND -f {folder}/apache.conf", f"wrk -t 1 -c 3 -d 3s {_PAGE}", "apache2 wrk", 20_000, APACHE
    ),
    "haproxy-ab": Program(
        "haproxy", "nginx -c {folder}/nginx.conf & haproxy -f {folder}/haproxy.conf", _AB, "haproxy nginx apache2-utils", 9_000, HAPROXY
    ),
    "squid-curl": Program(
        "squid",
        "nginx -c {folder}/nginx.conf & squid -N -f {folder}/squid.conf",
        "curl -sS -o /dev/null -x http://{address}:{port} http://127.0.0.1:8001/file.bin",
        "squid nginx curl",
        3_000_000,
        SQUID,
        "install -d -o proxy {folder}/spool",
    ),
    "redis-set": _redis("-c 1 -t set -n 1000000 -d 100"),
    "redis-set-large": _redis("-c 2 -t set -n 1000000 -d 20000"),
    "redis-get-large": _redis("-c 2 -t set,get -n 300 -d 20000"),
    "redis-pipeline": _redis("-c 1 -t set -n 1000000 -P 50 -d 1000"),
    "redis-pipeline-small": _redis("-c 1 -t incr -n 1000000 -P 16"),
    "redis-lists": _redis("-c 1 -n 100000 lrange lab 0 299", "redis-cli -h {address} -p {port} rpush lab $(seq 1000 1299)"),
    "memcached-set": Program(
        "memcached", _MEMCACHED, "memcslap -s {address}:{port} -t set --concurrency=1 --execute-number=400", "memcached libmemcached-tools"
    ),
    "memcached-get": Program(
        "memcached",
        _MEMCACHED,
        "memcslap -s {address}:{port} -t get --concurrency=2 --execute-number=200 --initial-load=100",
        "memcached libmemcached-tools",
    ),
    "memcached-copy-file": Program(
        "memcached", f"{_MEMCACHED} -I 8m", "memccp -s {address}:{port} {file}", "memcached libmemcached-tools", 3_000_000
    ),
    "pgbench-select": _postgres(f"{_PGBENCH} -S -T 3 -c 1 -n"),
    "pgbench-tpcb": _postgres(f"{_PGBENCH} -T 3 -c 2 -n"),
    "pgbench-prepared-think": _postgres(f"{_PGBENCH} -S -M prepared -T 3 -c 1 -n -R 20"),
    "psql-copy-out": _postgres(
        "psql -q -h {address} -p {port} -U postgres -c '\\copy pgbench_accounts to /dev/null'", needs=("psql", "pgbench")
    ),
    "psql-copy-in": _postgres(
        "seq 1 500000 | psql -q -h {address} -p {port} -U postgres -c '\\copy numbers from stdin'",
        "psql -q -h {address} -p {port} -U postgres -c 'create table numbers (n int)'",
        ("psql",),
    ),
    "pg-dump": _postgres("pg_dump -h {address} -p {port} -U postgres -f /dev/null", needs=("pg_dump", "pgbench")),
    "pg-basebackup": _postgres(
        "pg_basebackup -h {address} -p {port} -U postgres -D - -F t -X none -c fast >/dev/null", needs=("pg_basebackup", "pgbench")
    ),
    "mariadb-slap": _mariadb(
        "timeout 4 mariadb-slap -h {address} -P {port} -u lab -a --number-of-queries=2000 --auto-generate-sql-load-type=read; true"
    ),
    "mariadb-slap-writes": _mariadb(
        "timeout 4 mariadb-slap -h {address} -P {port} -u lab -a -c 2 --number-of-queries=2000 --auto-generate-sql-load-type=write; true"
    ),
    "mariadb-dump": _mariadb(
        "mariadb-dump -h {address} -P {port} -u lab lab",
        "mariadb -S {folder}/sock lab -e 'create table t (a int, b char(200)); insert into t select seq, md5(seq) from seq_1_to_15000'",
    ),
}
