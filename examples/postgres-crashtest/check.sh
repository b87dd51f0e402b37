#!/bin/sh
set -eu
. ./common.sh
rm -f "$data/postmaster.pid"
start || { tail -n 3 "$socket/log"; echo "PostgreSQL does not start"; exit 1; }
sql -c "select id from orders" | sort >"$LEYDEN_TMP/found"
as_postgres "$bin/pg_ctl" -D "$data" -s -m immediate stop
sort "$LEYDEN_ACKS" >"$LEYDEN_TMP/promised"
lost=$(comm -23 "$LEYDEN_TMP/promised" "$LEYDEN_TMP/found" | head -n 1)
[ -z "$lost" ] || { echo "lost order $lost"; exit 1; }
