"""Programs that transfer files or streams as fast as the path allows."""

from __future__ import annotations

from tcptrace_lab.lab.corpus.programs.program import Program
from tcptrace_lab.lab.corpus.programs.settings import (
    APACHE,
    FTP_SERVER,
    KEYS,
    LIGHTTPD,
    NGINX,
    NODE_HTTP,
    REPOSITORY,
    RSYNC_SERVER,
    SSH,
    SSH_OPTIONS,
    SSHD,
    TLS_KEY,
    nginx,
)

MB = 1_000_000
_IPERF = "iperf3 -s -p {port}"
_IPERF_CLIENT = "iperf3 -c {address} -p {port}"
_CURL = "curl -sS -o /dev/null http://{address}:{port}/file.bin"
_WGET = "wget -q -O /dev/null http://{address}:{port}/file.bin"


def _iperf(options: str) -> Program:
    return Program("iperf3", _IPERF, f"{_IPERF_CLIENT} {options}", "iperf3")


def _ssh(client: str, file_bytes: int = 4 * MB, needs: tuple[str, ...] = ()) -> Program:
    return Program("openssh", SSHD, client, "openssh-server openssh-client", file_bytes, prepare=KEYS, needs=("ssh", *needs))


BULK = {
    "iperf3-bytes": _iperf("-n 6M"),
    "iperf3-reverse": _iperf("-t 3 -R"),
    "iperf3-parallel": _iperf("-t 2 -P 4"),
    "iperf3-both-ways": _iperf("-t 2 --bidir"),
    "iperf3-4mbps": _iperf("-t 3 -b 4M"),
    "iperf3-1mbps-blocks-of-8k": _iperf("-t 3 -b 1M -l 8K -N"),
    "iperf3-fq-rate": _iperf("-t 3 --fq-rate 6M"),
    "iperf3-window-64k": _iperf("-t 3 -w 64K"),
    "iperf3-small-writes": _iperf("-t 2 -l 200"),
    "iperf3-mss-536": _iperf("-t 2 -M 536"),
    "nginx-curl": Program("nginx", NGINX, _CURL, "nginx curl", 6 * MB, nginx()),
    "nginx-wget": Program("nginx", NGINX, _WGET, "nginx wget", 4 * MB, nginx()),
    "nginx-tls-http2-curl": Program(
        "nginx",
        NGINX,
        "curl -sS -k -o /dev/null https://{address}:{port}/file.bin",
        "nginx curl openssl",
        4 * MB,
        nginx("ssl_certificate {folder}/tls.crt; ssl_certificate_key {folder}/tls.key;", listen="ssl http2"),
        TLS_KEY,
    ),
    "nginx-parallel-curl": Program(
        "nginx",
        NGINX,
        "curl -sS -Z --parallel-max 6 http://{address}:{port}/file.bin?[1-6] -o /dev/null -o /dev/null -o /dev/null -o /dev/null "
        "-o /dev/null -o /dev/null",
        "nginx curl",
        1 * MB,
        nginx(),
    ),
    "nginx-put-curl": Program(
        "nginx",
        NGINX,
        "curl -sS -T {file} http://{address}:{port}/put/file",
        "nginx curl",
        4 * MB,
        nginx("client_max_body_size 0; location /put { root {folder}; dav_methods PUT; create_full_put_path on; }"),
    ),
    "lighttpd-curl": Program("lighttpd", "lighttpd -D -f {folder}/lighttpd.conf", _CURL, "lighttpd curl", 6 * MB, LIGHTTPD),
    "lighttpd-wget": Program("lighttpd", "lighttpd -D -f {folder}/lighttpd.conf", _WGET, "lighttpd wget", 3 * MB, LIGHTTPD),
    "apache-curl": Program("apache", "apache2 -X -f {folder}/apache.conf", _CURL, "apache2 curl", 5 * MB, APACHE),
    "apache-wget": Program("apache", "apache2 -DFOREGROUND -f {folder}/apache.conf", _WGET, "apache2 wget", 3 * MB, APACHE),
    "caddy-curl": Program(
        "caddy",
        "env HOME={folder} caddy file-server --root {folder} --listen {address}:{port}",
        _CURL,
        "caddy curl",
        5 * MB,
        needs=("caddy",),
    ),
    "python-http-curl": Program("python-http", "{python} -m http.server {port} --bind {address}", _CURL, "curl", 5 * MB, needs=("curl",)),
    "node-http-curl": Program("node", "node {folder}/server.js", _CURL, "nodejs curl", 4 * MB, NODE_HTTP),
    "openssl-s-server": Program(
        "openssl",
        "openssl s_server -accept {port} -cert {folder}/tls.crt -key {folder}/tls.key -WWW -quiet",
        "curl -sS -k -o /dev/null https://{address}:{port}/file.bin",
        "openssl curl",
        3 * MB,
        prepare=TLS_KEY,
    ),
    "rsync-pull": Program(
        "rsync", RSYNC_SERVER[0], "rsync rsync://{address}:{port}/all/file.bin {folder}/copy", "rsync", 5 * MB, RSYNC_SERVER[1]
    ),
    "rsync-push": Program("rsync", RSYNC_SERVER[0], "rsync {file} rsync://{address}:{port}/all/copy", "rsync", 4 * MB, RSYNC_SERVER[1]),
    "rsync-many-small": Program(
        "rsync",
        RSYNC_SERVER[0],
        "rsync -r rsync://{address}:{port}/all/small {folder}/copies",
        "rsync",
        3 * MB,
        RSYNC_SERVER[1],
        "mkdir {folder}/small; cd {folder}/small; split -b 9000 -a 3 {file}",
    ),
    "rsync-delta": Program(
        "rsync",
        RSYNC_SERVER[0],
        "rsync --no-whole-file {file} rsync://{address}:{port}/all/copy",
        "rsync",
        6 * MB,
        RSYNC_SERVER[1],
        "cp {file} {folder}/copy; touch -d yesterday {folder}/copy; "
        "dd if=/dev/urandom of={file} bs=1000 count=600 seek=2000 conv=notrunc status=none",
    ),
    "scp-upload": _ssh(f"scp {SSH_OPTIONS} -P {{port}} {{file}} root@{{address}}:{{folder}}/copy"),
    "scp-download": _ssh(f"scp {SSH_OPTIONS} -P {{port}} root@{{address}}:{{file}} {{folder}}/copy"),
    "sftp-get": _ssh(f"echo get {{file}} {{folder}}/copy | sftp {SSH_OPTIONS} -P {{port}} -b - root@{{address}}", needs=("sftp",)),
    "ssh-cat": _ssh(f"{SSH} cat {{file}}"),
    "ssh-tar": _ssh(f"tar cf - -C /usr/share/doc apt bash coreutils | {SSH} 'cat >/dev/null'", 0),
    "dropbear-upload": Program(
        "dropbear",
        SSHD,
        "env HOME={folder} dbclient -y -y -i {folder}/id -p {port} root@{address} 'cat >/dev/null' <{file}",
        "dropbear-bin openssh-server",
        3 * MB,
        prepare=f"{KEYS}; dropbearkey -t ed25519 -f {{folder}}/id >/dev/null; "
        f"dropbearkey -y -f {{folder}}/id | grep ^ssh >{{folder}}/user.pub",
        needs=("dbclient", "dropbearkey"),
    ),
    "git-clone": Program(
        "git",
        "git daemon --reuseaddr --export-all --base-path={folder} --listen={address} --port={port}",
        "git clone -q git://{address}:{port}/repo {folder}/clone",
        "git",
        4 * MB,
        prepare=REPOSITORY,
    ),
    "git-push-ssh": Program(
        "git",
        SSHD,
        f"env GIT_SSH_COMMAND='ssh {SSH_OPTIONS} -p {{port}}' git -C {{folder}}/repo push -q root@{{address}}:{{folder}}/bare HEAD:main",
        "git openssh-server",
        3 * MB,
        prepare=f"{KEYS}; git init -q --bare {{folder}}/bare; {REPOSITORY}",
        needs=("git",),
    ),
    "vsftpd-download": Program(
        "vsftpd", "vsftpd {folder}/ftp.conf", "curl -sS -o /dev/null ftp://{address}:{port}/file.bin", "vsftpd curl", 4 * MB, FTP_SERVER
    ),
    "vsftpd-upload": Program(
        "vsftpd",
        "vsftpd {folder}/ftp.conf",
        "curl -sS -T {file} ftp://{address}:{port}/up/copy",
        "vsftpd curl",
        3 * MB,
        FTP_SERVER,
        "install -d -o ftp -m 777 {folder}/up",
    ),
    "socat-file": Program(
        "socat", "socat -u TCP-LISTEN:{port},reuseaddr OPEN:/dev/null", "socat -u OPEN:{file} TCP:{address}:{port}", "socat", 5 * MB
    ),
    "socat-file-small-blocks": Program(
        "socat", "socat -u TCP-LISTEN:{port},reuseaddr OPEN:/dev/null", "socat -u -b 700 OPEN:{file} TCP:{address}:{port}", "socat", 2 * MB
    ),
    "nbd-read": Program("nbdkit", "nbdkit -f -p {port} file {file}", "nbdcopy nbd://{address}:{port} null:", "nbdkit libnbd-bin", 5 * MB),
    "nbd-write": Program("nbdkit", "nbdkit -f -p {port} memory 5M", "nbdcopy {file} nbd://{address}:{port}", "nbdkit libnbd-bin", 4 * MB),
}
