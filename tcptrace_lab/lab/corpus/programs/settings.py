"""Server configurations and commands that several programs of the corpus use."""

from __future__ import annotations

TLS_KEY = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=lab "
    "-keyout {folder}/tls.key -out {folder}/tls.crt 2>/dev/null"
)
NGINX = "nginx -c {folder}/nginx.conf -e stderr"


def nginx(*lines: str, listen: str = "", serves: str = "") -> dict[str, str]:
    """Return the configuration of an nginx that serves its folder and runs as one process in the foreground."""
    server = f"listen {{port}} {listen}; root {{folder}}; {' '.join(lines)}"
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
"""A command that makes a host key and a user's login key for one transfer. The sshd runs unprivileged in the transfer's folder."""
SSHD = (
    "/usr/sbin/sshd -D -e -f /dev/null -p {port} -h {folder}/host -o AuthorizedKeysFile={folder}/user.pub -o StrictModes=no "
    "-o PermitRootLogin=yes -o PidFile=none -o 'Subsystem=sftp internal-sftp'"
)
SSH_OPTIONS = (
    "-i {folder}/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o IdentitiesOnly=yes -o BatchMode=yes -o LogLevel=ERROR"
)
SSH = f"ssh {SSH_OPTIONS} -p {{port}} root@{{address}}"

HAPROXY = {
    "nginx.conf": nginx()["nginx.conf"].replace("listen {port}", "listen 127.0.0.1:8001"),
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
BEHIND = {"nginx.conf": HAPROXY["nginx.conf"]}
"""Configuration of an nginx behind a proxy."""
STUNNEL = {
    "stunnel.conf": "foreground = yes\npid =\n[web]\naccept = {address}:{port}\nconnect = 127.0.0.1:8001\ncert = {folder}/tls.crt\n"
    "key = {folder}/tls.key\n"
}
SAMBA = {
    "smb.conf": "[global]\nmap to guest = Bad User\ninterfaces = {address}/24\nbind interfaces only = yes\nprivate dir = {folder}/samba\n"
    "lock directory = {folder}/samba\nstate directory = {folder}/samba\ncache directory = {folder}/samba\npid directory = {folder}/samba\n"
    "ncalrpc dir = {folder}/samba/rpc\nlog file = {folder}/samba.log\ndisable spoolss = yes\nload printers = no\n"
    "[all]\npath = {folder}\nguest ok = yes\nread only = no\nforce user = root\n",
    "client.conf": "[global]\nlock directory = {folder}/client\nstate directory = {folder}/client\ncache directory = {folder}/client\n"
    "private dir = {folder}/client\n",
}
SLAPD = {
    "slapd.conf": "include /etc/ldap/schema/core.schema\ninclude /etc/ldap/schema/cosine.schema\nmodulepath /usr/lib/ldap\n"
    "moduleload back_mdb\npidfile {folder}/slapd.pid\n"
    "sizelimit unlimited\ndatabase mdb\nsuffix dc=lab\ndirectory {folder}/ldap\nmaxsize 100000000\nindex cn eq\n"
}
DOVECOT = {
    "dovecot.conf": "base_dir = {folder}/run\nstate_dir = {folder}/run\nlog_path = /dev/stderr\nssl = no\ndisable_plaintext_auth = no\n"
    "protocols = imap\n"
    "listen = {address}\nservice imap-login {\n inet_listener imap {\n port = {port}\n }\n inet_listener imaps {\n port = 0\n }\n}\n"
    "mail_location = maildir:{folder}/mail\npassdb {\n driver = static\n args = nopassword=y\n}\n"
    "userdb {\n driver = static\n args = uid=nobody gid=nogroup home={folder}/mail\n}\nfirst_valid_gid = 0\ndefault_login_user = nobody\n"
    "default_internal_user = nobody\ndefault_internal_group = nogroup\n"
}
ICECAST = {
    "icecast.xml": "<icecast><authentication><source-password>lab</source-password><admin-user>a</admin-user>"
    "<admin-password>lab</admin-password>"
    "</authentication><listen-socket><port>{port}</port><bind-address>{address}</bind-address></listen-socket><paths><logdir>/tmp</logdir>"
    "<webroot>/usr/share/icecast2/web</webroot><adminroot>/usr/share/icecast2/admin</adminroot></paths><logging><accesslog>-</accesslog>"
    "<errorlog>-</errorlog></logging></icecast>\n"
}
GUNICORN = {
    "app.py": "import hashlib\n\n\ndef page(_, start):\n    start('200 OK', [('Content-Type', 'text/html')])\n"
    "    return [b'p' * 15000]\n\n\n"
    "def report(_, start):\n    start('200 OK', [('Content-Type', 'text/csv')])\n    for row in range(1500):\n"
    "        yield hashlib.pbkdf2_hmac('sha256', b'%d' % row, b'', 1500).hex().encode() * 12\n"
}
TORNADO = {
    "server.py": "import asyncio\n\nimport tornado.web\n\n\nclass Page(tornado.web.RequestHandler):\n    def get(self):\n"
    "        self.write('p' * 9000)\n\n\n"
    "class Events(tornado.web.RequestHandler):\n    async def get(self):\n        for number in range(60):\n"
    "            self.write(f'data: {number:0400}\\n\\n')\n            await self.flush()\n            await asyncio.sleep(0.06)\n\n\n"
    "async def main():\n    tornado.web.Application([('/page', Page), ('/events', Events)]).listen({port}, '{address}')\n"
    "    await asyncio.Event().wait()\n\n\nasyncio.run(main())\n"
}
JAVA_SERVER = {
    "Server.java": "import com.sun.net.httpserver.HttpServer;\nimport java.net.InetSocketAddress;\nimport java.nio.file.*;\n\n"
    "class Server {\n"
    "    public static void main(String[] arguments) throws Exception {\n"
    '        var server = HttpServer.create(new InetSocketAddress("{address}", {port}), 0);\n'
    '        server.createContext("/", one -> {\n            one.sendResponseHeaders(200, 0);\n'
    '            try (var out = one.getResponseBody()) { Files.copy(Path.of("{file}"), out); }\n        });\n'
    "        server.start();\n    }\n}\n"
}
INFLUXDB = {
    "influx.conf": 'reporting-disabled = true\nbind-address = "127.0.0.1:8088"\n[meta]\ndir = "{folder}/meta"\n[data]\n'
    'dir = "{folder}/data"\n'
    'wal-dir = "{folder}/wal"\n[http]\nbind-address = "{address}:{port}"\nlog-enabled = false\n[logging]\nlevel = "error"\n'
}
NGIRCD = {
    "irc.conf": "[Global]\nName = irc.lab\nInfo = lab\nListen = {address}\nPorts = {port}\n[Options]\nPAM = no\nIdent = no\nDNS = no\n"
}
