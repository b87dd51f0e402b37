#!/bin/sh
set -eu
. ./common.sh
start
for order in $(seq 1 20); do
    sql -c "insert into orders values ($order)"
    echo "ack $order" >>"$LEYDEN_ACK"
done
as_postgres "$bin/pg_ctl" -D "$data" -s -m immediate stop
