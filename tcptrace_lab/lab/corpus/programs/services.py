"""Further servers: file shares, directories, mail, radio, time series, small web servers. Also transfers with small socket buffers."""

from __future__ import annotations

from tcptrace_lab.lab.corpus.programs.program import Program
from tcptrace_lab.lab.corpus.programs.settings import (
    APACHE,
    BEHIND,
    DOVECOT,
    FTP_SERVER,
    GUNICORN,
    ICECAST,
    INFLUXDB,
    JAVA_SERVER,
    NGINX,
    NGIRCD,
    RSYNC_SERVER,
    SAMBA,
    SLAPD,
    STUNNEL,
    TLS_KEY,
    TORNADO,
    nginx,
)

MB = 1_000_000
_CURL = "curl -sS -o /dev/null http://{address}:{port}"
_FILE = f"{_CURL}/file.bin"
_SMBD = "smbd --foreground --no-process-group -s {folder}/smb.conf -p {port}"
_SMBCLIENT = "smbclient //{address}/all -p {port} -N -s {folder}/client.conf"
_SLAPD = "slapd -d 0 -h ldap://{address}:{port} -f {folder}/slapd.conf"
_ENTRIES = (
    "mkdir {folder}/ldap; (printf 'dn: dc=lab\\nobjectClass: domain\\ndc: lab\\n\\n'; for n in $(seq 4000); do printf 'dn: cn=%d,dc=lab\\n"
    "objectClass: person\\nsn: name %d\\ndescription: %0100d\\n\\n' $n $n $n; done) | slapadd -q -f {folder}/slapd.conf"
)
_ETCD = (
    "etcd --data-dir {folder}/etcd --listen-client-urls http://{address}:{port} --advertise-client-urls http://{address}:{port} "
    "--listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 "
    "--initial-cluster default=http://127.0.0.1:2380"
)
_ETCDCTL = "env ETCDCTL_API=3 etcdctl --endpoints=http://{address}:{port}"
_NOBODY = "setpriv --reuid nobody --regid nogroup --clear-groups"
_INFLUXD = "env HOME={folder} influxd -config {folder}/influx.conf"
_POINTS = "for n in $(seq 20000); do echo lab,host=a value=$n ${n}000000; done >{folder}/points"
_WRITE = "curl -sS --data-binary @{folder}/points 'http://{address}:{port}/write?db=lab'"
_TGTD = "tgtd -f -C 7 --iscsi portal={address}:{port}"
_TGTADM = "tgtadm -C 7 --lld iscsi"

SERVICES = {
    "samba-get": Program(
        "samba", _SMBD, f"{_SMBCLIENT} -c 'get file.bin /dev/null'", "samba smbclient", 5 * MB, SAMBA, needs=("smbclient",)
    ),
    "samba-put": Program("samba", _SMBD, f"{_SMBCLIENT} -c 'put {{file}} copy'", "samba smbclient", 4 * MB, SAMBA, needs=("smbclient",)),
    "samba-list": Program(
        "samba",
        _SMBD,
        f"{_SMBCLIENT} -c 'recurse; ls' >/dev/null",
        "samba smbclient",
        files=SAMBA,
        prepare="cp -r /usr/share/doc/a* {folder}",
        needs=("smbclient",),
    ),
    "slapd-search-all": Program(
        "openldap",
        _SLAPD,
        "ldapsearch -x -H ldap://{address}:{port} -b dc=lab -LLL >/dev/null",
        "slapd ldap-utils",
        files=SLAPD,
        prepare=_ENTRIES,
        needs=("slapadd",),
    ),
    "slapd-search-each": Program(
        "openldap",
        _SLAPD,
        "for n in $(seq 40); do ldapsearch -x -H ldap://{address}:{port} -b dc=lab -LLL cn=$n >/dev/null; done",
        "slapd ldap-utils",
        files=SLAPD,
        prepare=_ENTRIES,
        needs=("slapadd", "ldapsearch"),
    ),
    "dovecot-fetch": Program(
        "dovecot",
        "dovecot -F -c {folder}/dovecot.conf",
        "curl -sS -u lab:lab 'imap://{address}:{port}/INBOX;MAILINDEX=[1-30]' >/dev/null",
        "dovecot-imapd curl",
        100_000,
        DOVECOT,
        "mkdir -p {folder}/mail/cur {folder}/mail/new {folder}/mail/tmp; for n in $(seq 30); do "
        "(printf 'From: a@lab\\nSubject: %d\\n\\n' $n; base64 {file}) >{folder}/mail/new/$n.lab; done; chown -R nobody {folder}/mail",
    ),
    "icecast-listener": Program(
        "icecast",
        f"{_NOBODY} icecast2 -c {{folder}}/icecast.xml & sleep 1; exec ffmpeg -v error -re -f lavfi -i sine -c:a mp2 -b:a 192k -f mp2 "
        "-content_type audio/mpeg icecast://source:lab@{address}:{port}/lab",
        f"timeout 4 {_CURL}/lab; true",
        "icecast2 ffmpeg curl",
        files=ICECAST,
        before="sleep 2",
        needs=("icecast2", "ffmpeg", "curl"),
    ),
    "mini-httpd-curl": Program("mini-httpd", "mini_httpd -D -u root -p {port} -h {address} -d {folder}", _FILE, "mini-httpd curl", 4 * MB),
    "webfs-curl": Program("webfs", "webfsd -F -p {port} -i {address} -r {folder}", _FILE, "webfs curl", 4 * MB),
    "webfs-ab": Program(
        "webfs",
        "webfsd -F -p {port} -i {address} -r {folder}",
        "ab -q -k -n 100000 -t 3 -c 1 http://{address}:{port}/file.bin",
        "webfs apache2-utils",
        20_000,
    ),
    "gunicorn-report": Program(
        "gunicorn",
        "/usr/bin/gunicorn -b {address}:{port} app:report",
        f"{_CURL}/",
        "gunicorn curl",
        files=GUNICORN,
        needs=("gunicorn", "curl"),
    ),
    "gunicorn-ab": Program(
        "gunicorn",
        "/usr/bin/gunicorn -b {address}:{port} app:page",
        "ab -q -n 100000 -t 3 -c 2 http://{address}:{port}/",
        "gunicorn apache2-utils",
        files=GUNICORN,
        needs=("gunicorn",),
    ),
    "tornado-events": Program(
        "tornado",
        "/usr/bin/python3 {folder}/server.py",
        f"timeout 4 {_CURL}/events; true",
        "python3-tornado curl",
        files=TORNADO,
        needs=("curl",),
    ),
    "tornado-wrk": Program(
        "tornado",
        "/usr/bin/python3 {folder}/server.py",
        "wrk -t 1 -c 2 -d 3s http://{address}:{port}/page",
        "python3-tornado wrk",
        files=TORNADO,
    ),
    "java-http-curl": Program(
        "java", "java {folder}/Server.java", _FILE, "default-jdk-headless curl", 4 * MB, JAVA_SERVER, needs=("curl",)
    ),
    "influxdb-write": Program(
        "influxdb",
        _INFLUXD,
        f"for n in 1 2 3 4; do {_WRITE}; sleep 0.2; done",
        "influxdb curl",
        files=INFLUXDB,
        prepare=_POINTS,
        before="curl -sS -X POST 'http://{address}:{port}/query?q=CREATE+DATABASE+lab' >/dev/null",
        needs=("influxd", "curl"),
    ),
    "influxdb-query": Program(
        "influxdb",
        _INFLUXD,
        f"{_CURL}/query?db=lab'&'q=SELECT+*+FROM+lab",
        "influxdb curl",
        files=INFLUXDB,
        prepare=_POINTS,
        before=f"curl -sS -X POST 'http://{{address}}:{{port}}/query?q=CREATE+DATABASE+lab' >/dev/null; {_WRITE}",
        needs=("influxd", "curl"),
    ),
    "etcd-put": Program(
        "etcd",
        _ETCD,
        f"for n in $(seq 20); do {_ETCDCTL} put key$n value$n >/dev/null; done",
        "etcd-server etcd-client",
        needs=("etcd", "etcdctl"),
    ),
    "stunnel-curl": Program(
        "stunnel",
        "nginx -c {folder}/nginx.conf & exec stunnel4 {folder}/stunnel.conf",
        "curl -sS -k -o /dev/null https://{address}:{port}/file.bin",
        "stunnel4 nginx curl",
        4 * MB,
        BEHIND | STUNNEL,
        TLS_KEY,
        needs=("stunnel4",),
    ),
    "iscsi-read": Program(
        "tgt",
        _TGTD,
        "timeout 4 iscsi-perf -b 32 -m 4 -t 3 iscsi://{address}:{port}/iqn.2026-01.lab:one/1 >/dev/null; true",
        "tgt libiscsi-bin",
        4 * MB,
        before=f"{_TGTADM} --op new --mode target --tid 1 -T iqn.2026-01.lab:one; "
        f"{_TGTADM} --op new --mode logicalunit --tid 1 --lun 1 -b {{file}}; "
        f"{_TGTADM} --op bind --mode target --tid 1 -I ALL",
        needs=("tgtadm", "iscsi-perf"),
    ),
    "beanstalkd-jobs": Program(
        "beanstalkd",
        "beanstalkd -l {address} -p {port}",
        "(for n in $(seq 150); do printf 'put 0 0 60 40\\r\\n%040d\\r\\n' $n; sleep 0.01; done; "
        "sleep 0.2) | socat -t 1 - TCP:{address}:{port} >/dev/null",
        "beanstalkd socat",
        needs=("beanstalkd", "socat"),
    ),
    "ngircd-talk": Program(
        "ngircd",
        "ngircd -n -f {folder}/irc.conf",
        "(printf 'NICK a\\r\\nUSER a 0 * :a\\r\\n'; sleep 0.5; printf 'JOIN #lab\\r\\n'; for n in $(seq 25); do printf 'WHO #lab\\r\\n"
        "PRIVMSG a :line %d\\r\\n' $n; "
        "sleep 0.1; done) | socat -t 1 - TCP:{address}:{port} >/dev/null",
        "ngircd socat",
        files=NGIRCD,
        needs=("socat",),
    ),
    "vsftpd-lftp-segments": Program(
        "vsftpd",
        "vsftpd {folder}/ftp.conf",
        "env HOME={folder} lftp -e 'set net:max-retries 1; pget -n 3 file.bin -o {folder}/copy; exit' ftp://{address}:{port}",
        "vsftpd lftp",
        4 * MB,
        FTP_SERVER,
        needs=("lftp",),
    ),
    "nginx-aria2-segments": Program(
        "nginx", NGINX, "aria2c -q -x 4 -s 4 -k 1M -d {folder}/got http://{address}:{port}/file.bin", "nginx aria2", 5 * MB, nginx()
    ),
    "nginx-small-send-buffer": Program("nginx", NGINX, _FILE, "nginx curl", 3 * MB, nginx(listen="sndbuf=16k")),
    "apache-small-send-buffer": Program(
        "apache",
        "apache2 -DFOREGROUND -f {folder}/apache.conf",
        _FILE,
        "apache2 curl",
        3 * MB,
        {"apache.conf": f"{APACHE['apache.conf']}SendBufferSize 20000\n"},
    ),
    "rsync-small-send-buffer": Program(
        "rsync",
        RSYNC_SERVER[0],
        "rsync --sockopts=SO_SNDBUF=24000 {file} rsync://{address}:{port}/all/copy",
        "rsync",
        3 * MB,
        RSYNC_SERVER[1],
    ),
    "socat-small-send-buffer": Program(
        "socat",
        "socat -u TCP-LISTEN:{port},reuseaddr OPEN:/dev/null",
        "socat -u OPEN:{file} TCP:{address}:{port},sndbuf=12000",
        "socat",
        2 * MB,
    ),
    "socat-small-receive-buffer": Program(
        "socat",
        "socat -u TCP-LISTEN:{port},reuseaddr,rcvbuf=20000 OPEN:/dev/null",
        "socat -u OPEN:{file} TCP:{address}:{port}",
        "socat",
        2 * MB,
    ),
    "nginx-put-small-receive-buffer": Program(
        "nginx",
        NGINX,
        "curl -sS -T {file} http://{address}:{port}/put/file",
        "nginx curl",
        3 * MB,
        nginx("client_max_body_size 0; location /put { root {folder}; dav_methods PUT; create_full_put_path on; }", listen="rcvbuf=30k"),
    ),
    "iperf3-window-24k-reverse": Program("iperf3", "iperf3 -s -p {port}", "iperf3 -c {address} -p {port} -t 3 -R -w 24K", "iperf3"),
}
