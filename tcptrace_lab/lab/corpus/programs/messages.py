"""Programs that send messages, keystrokes or logs, and programs that send periodically or at a limited rate."""

from __future__ import annotations

from tcptrace_lab.lab.corpus.programs.program import Program
from tcptrace_lab.lab.corpus.programs.settings import KEYS, MOSQUITTO, NGINX, RSYNC_SERVER, RSYSLOG, SSH, SSH_OPTIONS, SSHD, nginx

MB = 1_000_000
_SINK = "socat -u TCP-LISTEN:{port},reuseaddr,fork OPEN:/dev/null"
_TYPED = "(for n in $(seq 25); do printf '%s' 'ls -l'; sleep 0.12; done)"
_PUBLISH = "mosquitto_pub -h {address} -p {port} -t lab -l"
_SUBSCRIBE = "mosquitto_sub -h {address} -p {port} -t lab"
_URL = "http://{address}:{port}/file.bin"
_RSYSLOG = "rsyslogd -n -f {folder}/rsyslog.conf -i {folder}/rsyslog.pid"
_LOGGER = "logger -T -n {address} -P {port} --socket-errors=on"


def _sampler(size: int, every_ms: float, more: str = "", server: str = _SINK) -> Program:
    client = f"{{python}} {{here}}/sampler.py {{address}} {{port}} {size} {every_ms} 3 {more}"
    return Program("sampler", server, client, "socat")


def _mosquitto(client: str) -> Program:
    return Program(
        "mosquitto",
        "mosquitto -c {folder}/mosquitto.conf",
        client,
        "mosquitto mosquitto-clients",
        40_000,
        MOSQUITTO,
        needs=("mosquitto_pub",),
    )


def _ssh(client: str) -> Program:
    return Program("openssh", SSHD, client, "openssh-server openssh-client", 4 * MB, prepare=KEYS, needs=("ssh",))


def _ffmpeg(source: str, coding: str) -> Program:
    client = f"ffmpeg -v error -re -f lavfi -i {source} -t 4 {coding} -f mpegts tcp://{{address}}:{{port}}"
    return Program("ffmpeg", _SINK, client, "ffmpeg socat")


MESSAGES = {
    "mosquitto-lines": _mosquitto(f"seq 1 20000 | {_PUBLISH}"),
    "mosquitto-lines-acknowledged": _mosquitto(f"seq 1 20000 | {_PUBLISH} -q 1"),
    "mosquitto-sensor": _mosquitto(f"for n in $(seq 30); do echo reading $n; sleep 0.1; done | {_PUBLISH} -q 1"),
    "mosquitto-subscriber": Program(
        "mosquitto",
        "mosquitto -c {folder}/mosquitto.conf & sleep 1; while mosquitto_pub -h {address} -p {port} -t lab -f {file}; do sleep 0.02; done",
        f"timeout 3 {_SUBSCRIBE} >/dev/null; true",
        "mosquitto mosquitto-clients",
        40_000,
        MOSQUITTO,
        needs=("mosquitto", "mosquitto_pub"),
    ),
    "nats-publish": Program(
        "nats",
        "nats-server -a {address} -p {port}",
        "(printf 'CONNECT {\"verbose\":false}\\r\\n'; for n in $(seq 20000); do printf 'PUB lab 40\\r\\n%040d\\r\\n' $n; done; sleep 0.3) "
        "| socat -t 1 - TCP:{address}:{port}",
        "nats-server socat",
        needs=("socat",),
    ),
    "nats-subscribe": Program(
        "nats",
        "nats-server -a {address} -p {port} & sleep 0.5; "
        "(while sleep 0.01; do for n in 1 2 3 4; do printf 'PUB a 400\\r\\n%0400d\\r\\n' $n; done; done) | socat -u - TCP:{address}:{port}",
        "(printf 'CONNECT {\"verbose\":false}\\r\\nSUB a 1\\r\\n'; sleep 3) | socat -t 0.1 - TCP:{address}:{port} >/dev/null",
        "nats-server socat",
        needs=("nats-server", "socat"),
    ),
    "ssh-typing": _ssh(f"({_TYPED}; printf '\\n\\004') | {SSH} -tt cat >/dev/null"),
    "ssh-commands": _ssh(f"(for n in $(seq 8); do echo 'ls -lR /usr/share/doc/apt'; sleep 0.3; done; echo exit) | {SSH} -tt sh >/dev/null"),
    "telnet-typing": Program(
        "telnet",
        "socat TCP-LISTEN:{port},reuseaddr,nodelay EXEC:cat,pty,setsid",
        f"({_TYPED}; sleep 0.3) | telnet {{address}} {{port}} >/dev/null; true",
        "socat telnet",
        needs=("telnet",),
    ),
    "ssh-forwarded-curl": Program(
        "openssh",
        f"nginx -c {{folder}}/nginx.conf & {SSHD}",
        f"ssh {SSH_OPTIONS} -p {{port}} -fN -L 9000:127.0.0.1:8001 root@{{address}}; for n in 1 2 3 4 5 6; do "
        "curl -sS -o /dev/null http://127.0.0.1:9000/file.bin; sleep 0.2; done",
        "openssh-server nginx curl",
        300_000,
        {"nginx.conf": nginx()["nginx.conf"].replace("listen 8000", "listen 127.0.0.1:8001")},
        KEYS,
        needs=("ssh", "curl"),
    ),
    "curl-limit-rate": Program("nginx", NGINX, f"curl -sS -o /dev/null --limit-rate 500K {_URL}", "nginx curl", int(1.5 * MB), nginx()),
    "wget-limit-rate": Program("nginx", NGINX, f"wget -q -O /dev/null --limit-rate=400k {_URL}", "nginx wget", int(1.2 * MB), nginx()),
    "nginx-limit-rate": Program("nginx", NGINX, f"curl -sS -o /dev/null {_URL}", "nginx curl", int(1.5 * MB), nginx("limit_rate 400k;")),
    "nginx-segments-on-a-clock": Program(
        "nginx", NGINX, f"for n in 1 2 3 4 5 6; do curl -sS -o /dev/null {_URL}; sleep 0.4; done", "nginx curl", 200_000, nginx()
    ),
    "nginx-segments-one-connection": Program(
        "nginx", NGINX, f"curl -sS --rate 3/s {_URL}?[1-9] -o /dev/null", "nginx curl", 150_000, nginx()
    ),
    "rsync-bwlimit": Program(
        "rsync", RSYNC_SERVER[0], "rsync --bwlimit=600 {file} rsync://{address}:{port}/all/copy", "rsync", 2 * MB, RSYNC_SERVER[1]
    ),
    "scp-limited": _ssh(f"scp -l 5000 {SSH_OPTIONS} -P {{port}} {{file}} root@{{address}}:{{folder}}/copy"),
    "sampler-200-every-20ms": _sampler(200, 20),
    "sampler-1k-every-10ms": _sampler(1_000, 10),
    "sampler-4k-every-5ms": _sampler(4_000, 5),
    "sampler-9k-every-33ms": _sampler(9_000, 33),
    "sampler-60k-every-100ms": _sampler(60_000, 100),
    "sampler-100-every-2ms": _sampler(100, 2),
    "sampler-answered": _sampler(700, 30, "answered", "socat TCP-LISTEN:{port},reuseaddr PIPE"),
    "sampler-stop-and-wait": _sampler(1_200, 0.01, "answered", "socat TCP-LISTEN:{port},reuseaddr PIPE"),
    "ffmpeg-video": _ffmpeg("testsrc2=size=640x360:rate=25", "-c:v mpeg2video -b:v 2M"),
    "ffmpeg-audio": _ffmpeg("sine=frequency=440:sample_rate=48000", "-c:a mp2 -b:a 192k"),
    "ffmpeg-raw-video": Program(
        "ffmpeg",
        _SINK,
        "ffmpeg -v error -re -f lavfi -i testsrc2=size=160x120:rate=15 -t 3 -pix_fmt yuv420p -f rawvideo tcp://{address}:{port}",
        "ffmpeg socat",
    ),
    "logger-lines": Program(
        "logger", _SINK, f"for n in $(seq 25); do echo a line of a log, number $n; sleep 0.1; done | {_LOGGER}", "socat", needs=("logger",)
    ),
    "logger-file": Program(
        "logger", _SINK, f"seq -f 'line %.0f of a log that is sent as fast as it goes' 60000 | {_LOGGER}", "socat", needs=("logger",)
    ),
    "rsyslog-forward": Program(
        "rsyslog",
        _SINK,
        f"{_RSYSLOG} & sleep 0.4; for n in $(seq 40); do logger -u {{folder}}/log a line of a log, number $n; sleep 0.05; done; sleep 0.3",
        "rsyslog socat",
        files=RSYSLOG,
        needs=("rsyslogd", "logger"),
    ),
    "rsyslog-forward-file": Program(
        "rsyslog",
        _SINK,
        f"{_RSYSLOG} & sleep 0.4; seq -f 'line %.0f of a log' 20000 | logger -u {{folder}}/log; sleep 1",
        "rsyslog socat",
        files=RSYSLOG,
        needs=("rsyslogd", "logger"),
    ),
}

_BORG_HERE = "env HOME={folder} BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes BORG_RELOCATED_REPO_ACCESS_IS_OK=yes"
_BORG = f"{_BORG_HERE} BORG_RSH='ssh {SSH_OPTIONS}' borg"
_RESTIC_HERE = "env HOME={folder} RESTIC_PASSWORD=lab restic -q"
_RESTIC = (
    f"{_RESTIC_HERE} -o sftp.command='ssh {SSH_OPTIONS} -p {{port}} root@{{address}} -s sftp' -r sftp:root@{{address}}:{{folder}}/restic"
)

BACKUP = {
    "borg-create": Program(
        "borg",
        SSHD,
        f"{_BORG} create ssh://root@{{address}}:{{port}}/{{folder}}/borg::one {{file}}",
        "borgbackup openssh-server",
        3 * MB,
        prepare=f"{KEYS}; {_BORG_HERE} borg init -e none {{folder}}/borg",
        needs=("borg",),
    ),
    "borg-extract": Program(
        "borg",
        SSHD,
        f"{_BORG} extract --stdout ssh://root@{{address}}:{{port}}/{{folder}}/borg::one >/dev/null",
        "borgbackup openssh-server",
        4 * MB,
        prepare=f"{KEYS}; {_BORG_HERE} borg init -e none {{folder}}/borg; {_BORG_HERE} borg create {{folder}}/borg::one {{file}}",
        needs=("borg",),
    ),
    "restic-backup": Program(
        "restic",
        SSHD,
        f"{_RESTIC} backup {{file}}",
        "restic openssh-server",
        5 * MB,
        prepare=f"{KEYS}; {_RESTIC_HERE} -r {{folder}}/restic init",
        needs=("restic",),
    ),
    "restic-restore": Program(
        "restic",
        SSHD,
        f"{_RESTIC} restore latest --target {{folder}}/restored",
        "restic openssh-server",
        5 * MB,
        prepare=f"{KEYS}; {_RESTIC_HERE} -r {{folder}}/restic init; {_RESTIC_HERE} -r {{folder}}/restic backup {{file}}",
        needs=("restic",),
    ),
}
