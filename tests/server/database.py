# SPDX-License-Identifier: GPL-2.0-only
"""A database on the volume, which knows what it was promised, and the power goes."""

import re

from lclib import Disk, case, wait

DISKS = (Disk("hdd", "1G", kind="recorded"), Disk("ssd", "96M", kind="recorded"))
LIVES = 2
CLIENTS = 4
BRANCHES = 3        # pgbench's scale: 45 MB of tables
ACKNOWLEDGED = re.compile(r"acknowledged (\d+) (\d+) (\d+) \.")
CONFIGURATION = """
listen_addresses = ''
shared_buffers = 16MB
checkpoint_timeout = 30s
max_wal_size = 64MB
"""
# pgbench's own transaction, which also counts; each END that came back is told to the console.
TRANSACTION = f"""
\\set n :n + 1
\\set aid random(1, {BRANCHES * 100000})
\\set tid random(1, {BRANCHES * 10})
\\set bid random(1, {BRANCHES})
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime, life, client, n)
VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP, :life, :client_id, :n);
END;
\\shell echo acknowledged :life :client_id :n . > /run/told
"""


def postgres(ctx, script, limit=300):
    """Run a script as the database's owner; returns what it printed."""
    return ctx.run(f"export PATH=$(echo /usr/lib/postgresql/*/bin):$PATH PGDATABASE=bench "
                   f"PGDATA=/srv/music/db\n{script}", user="postgres", limit=limit)


def serve(ctx, how="start"):
    """Start or stop the database."""
    postgres(ctx, f"pg_ctl -s -w -t 300 -l /var/lib/postgresql/log {how}", limit=360)


def prepare(ctx):
    """A database with page checksums on the volume, and pgbench's tables in it."""
    ctx.run("mkfs.ext4 -q /dev/mapper/music && mkdir /srv/music && "
            "mount /dev/mapper/music /srv/music && "
            "install -d -o postgres -g postgres -m 700 /srv/music/db")
    postgres(ctx, "initdb --data-checksums --no-instructions --auth=trust > /dev/null && "
             f"echo \"{CONFIGURATION}\" >> $PGDATA/postgresql.conf")
    serve(ctx)
    postgres(ctx, f"createdb bench && pgbench -q -i -s {BRANCHES} && psql -q -c 'ALTER TABLE "
             "pgbench_history ADD life int, ADD client int, ADD n int'")
    ctx.run(f"cat > /var/lib/postgresql/transaction << 'END_OF_SCRIPT'{TRANSACTION}"
            "END_OF_SCRIPT\nsync")


def load(ctx, life, number):
    """Start pgbench; returns {client: its last transaction}, once so many are acknowledged."""
    ctx.run("mkfifo -m 622 /run/told && exec 3<> /run/told && "
            "{ setsid cat <&3 > /dev/console 2> /dev/null & }")
    postgres(ctx, f"{{ setsid pgbench -n -c {CLIENTS} -j 2 -T 100000 -D n=0 -D life={life} "
             "-f /var/lib/postgresql/transaction 2>&1; echo pgbench ended; } > /run/told &")

    def acknowledged():
        told = ctx.console().read_text("utf-8", "replace")
        assert "pgbench ended" not in told, told[-2000:]
        return ACKNOWLEDGED.findall(told)

    wait.until(lambda: len(acknowledged()) >= number, 600 * ctx.scale, f"{number} transactions")
    ctx.cut()
    last = {}
    for of, client, n in acknowledged():
        assert int(of) == life, (of, life)
        last[int(client)] = max(int(n), last.get(int(client), 0))
    return last


def recover(ctx):
    """Boot after a power cut, start volume and database, which recovers."""
    ctx.start()
    ctx.run(f"modprobe dm-lc && lc-resume music {ctx.path('ssd')} && "
            "mount /dev/mapper/music /srv/music && : > /var/lib/postgresql/log")
    serve(ctx)
    log = ctx.run("cat /var/lib/postgresql/log")
    assert "automatic recovery in progress" in log, log


def transactions(ctx):
    """{(life, client): its last transaction}; none before it is missing."""
    found = {}
    for row in postgres(ctx, "psql -A -t -F ' ' -c 'SELECT life, client, max(n), count(*), "
                        "count(DISTINCT n) FROM pgbench_history GROUP BY 1, 2'").splitlines():
        life, client, last, count, distinct = map(int, row.split())
        assert last == count == distinct, f"life {life}, client {client}: {row}"
        found[life, client] = last
    return found


def judge(ctx, promised):
    """All that was acknowledged is there, the books balance, indexes and pages are sound."""
    found = transactions(ctx)
    lost = {key: (n, found.get(key, 0)) for key, n in promised.items() if found.get(key, 0) < n}
    assert not lost, f"(life, client): (acknowledged, found): {lost}"
    sums = postgres(ctx, "psql -A -t -F ' ' -c 'SELECT (SELECT sum(delta) FROM pgbench_history), "
                    "(SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM "
                    "pgbench_tellers), (SELECT sum(bbalance) FROM pgbench_branches)'").split()
    assert len(sums) == 4 and len(set(sums)) == 1, sums
    postgres(ctx, "pg_amcheck --install-missing --heapallindexed --rootdescend bench", limit=600)
    serve(ctx, "stop")
    checked = postgres(ctx, "pg_checksums --check")
    assert re.search(r"Bad checksums: +0\n", checked), checked
    return found


@case(kernels=("server",), disks=DISKS, timeout=1800, module="", memory="2G", long=True)
def power_goes_under_pgbench(ctx):
    """PostgreSQL on the volume, and the power goes, twice: each transaction that was acknowledged
    is there and none before it is missing, sums, indexes and page checksums are right.
    """
    ctx.install()
    ctx.run(f"lc-format --yes --backing {ctx.path('hdd')} {ctx.path('ssd')} && "
            f"lc-resume music {ctx.path('ssd')}")
    prepare(ctx)
    promised = {}
    for life in range(1, LIVES + 1):
        last = load(ctx, life, ctx.random.randrange(400, 900))
        promised |= {(life, client): n for client, n in last.items()}
        recover(ctx)
        found = judge(ctx, promised)
        promised |= found  # what has been seen must stay
        if life < LIVES:
            serve(ctx)
    ctx.figure("transactions", sum(found.values()))
    ctx.run("umount /srv/music && udevadm settle && fsck.ext4 -fn /dev/mapper/music && "
            "lc-remove music", limit=300)
