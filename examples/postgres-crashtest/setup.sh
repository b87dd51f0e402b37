#!/bin/sh
set -eu
. ./common.sh
chmod 755 "$LEYDEN_MOUNT"
mkdir "$data"
chown postgres "$data"
as_postgres "$bin/initdb" -D "$data" -A trust -N >/dev/null
start
sql -c "create table orders(id int primary key)"
as_postgres "$bin/pg_ctl" -D "$data" -s -m fast stop
