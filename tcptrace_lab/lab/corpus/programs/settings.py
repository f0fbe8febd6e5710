"""Settings of servers, and what several programs share."""

from __future__ import annotations

from tcptrace_lab.lab.corpus.programs.program import PORT

TLS_KEY = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=lab "
    "-keyout {folder}/tls.key -out {folder}/tls.crt 2>/dev/null"
)
NGINX = "nginx -c {folder}/nginx.conf -e stderr"


def nginx(*lines: str, listen: str = "", serves: str = "") -> dict[str, str]:
    """Settings of an nginx that serves its folder from one process in the foreground."""
    server = f"listen {PORT} {listen}; root {{folder}}; {' '.join(lines)}"
    paths = " ".join(f"{kind}_temp_path {{folder}}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    whole = f"user root; daemon off; master_process off; pid {{folder}}/pid; error_log stderr; events {{}} http {{ {paths} access_log off; "
    return {"nginx.conf": f"{whole} sendfile on; keepalive_requests 100000; {serves} server {{ {server} }} }}\n"}


LIGHTTPD = {
    "lighttpd.conf": 'server.document-root = "{folder}"\nserver.port = {port}\nserver.bind = "{address}"\n'
    "server.max-keep-alive-requests = 10000\n"
}
APACHE = {
    "apache.conf": "LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so\n"
    "LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\nServerName lab\n"
    "Listen {address}:{port}\nPidFile {folder}/pid\n"
    "ErrorLog {folder}/error.log\nDocumentRoot {folder}\nUser www-data\nGroup www-data\nMaxKeepAliveRequests 0\n"
    "<Directory {folder}>\nRequire all granted\n</Directory>\n"
}
NODE_HTTP = {
    "server.js": "const fs = require('fs');\nrequire('http').createServer((_, out) => fs.createReadStream('{file}').pipe(out))"
    ".listen({port}, '{address}');\n"
}
RSYNC_SERVER = (
    "rsync --daemon --no-detach --config={folder}/rsyncd.conf --port={port} --address={address}",
    {
        "rsyncd.conf": "use chroot = no\nuid = root\ngid = root\nlog file = /dev/null\npid file = {folder}/rsync.pid\n"
        "[all]\npath = {folder}\nread only = no\n"
    },
)
FTP_SERVER = {
    "ftp.conf": "listen=YES\nlisten_ipv6=NO\nbackground=NO\nlisten_address={address}\nlisten_port={port}\nanonymous_enable=YES\n"
    "anon_root={folder}\nwrite_enable=YES\nanon_upload_enable=YES\nanon_mkdir_write_enable=YES\nno_anon_password=YES\n"
    "secure_chroot_dir={folder}\n"
    "pasv_address={address}\nallow_writeable_chroot=YES\nseccomp_sandbox=NO\nxferlog_enable=NO\n"
}

KEYS = "mkdir -p /run/sshd; for one in host user; do ssh-keygen -q -t ed25519 -N '' -f {folder}/$one; done; chmod 600 {folder}/user"
"""Keys of a host and of a user who may log in with them, both for this one transfer; sshd goes to its folder without rights."""
SSHD = (
    "/usr/sbin/sshd -D -e -f /dev/null -p {port} -h {folder}/host -o AuthorizedKeysFile={folder}/user.pub -o StrictModes=no "
    "-o PermitRootLogin=yes -o PidFile=none -o 'Subsystem=sftp internal-sftp'"
)
SSH_OPTIONS = (
    "-i {folder}/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o IdentitiesOnly=yes -o BatchMode=yes -o LogLevel=ERROR"
)
SSH = f"ssh {SSH_OPTIONS} -p {{port}} root@{{address}}"

HAPROXY = {
    "nginx.conf": nginx()["nginx.conf"].replace(f"listen {PORT}", "listen 127.0.0.1:8001"),
    "haproxy.conf": "defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n"
    "frontend web\n bind {address}:{port}\n default_backend files\nbackend files\n server one 127.0.0.1:8001\n",
}
SQUID = {
    "nginx.conf": HAPROXY["nginx.conf"],
    "squid.conf": "http_port {address}:{port}\nhttp_access allow all\ncache deny all\npid_filename {folder}/squid.pid\naccess_log none\n"
    "cache_log /dev/stderr\ncoredump_dir {folder}/spool\nshutdown_lifetime 0 seconds\npinger_enable off\n",
}
MOSQUITTO = {"mosquitto.conf": "listener {port} {address}\nallow_anonymous true\nuser root\nmax_queued_messages 0\n"}
RSYSLOG = {
    "rsyslog.conf": 'global(workDirectory="{folder}")\nmodule(load="imuxsock" SysSock.Use="off")\n'
    'input(type="imuxsock" Socket="{folder}/log" '
    'RateLimit.Interval="0")\n*.* @@{address}:{port}\n'
}

REPOSITORY = (
    "git init -q {folder}/repo; cp {file} {folder}/repo; git -C {folder}/repo add .; "
    "git -C {folder}/repo -c user.name=a -c user.email=a@b commit -q -m one"
)
