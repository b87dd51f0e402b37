# Sourced by setup, work and check: where PostgreSQL is, and how it is started on the drive.
bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
data=$LEYDEN_MOUNT/data
socket=$LEYDEN_TMP
as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups --inh-caps=-all "$@"; }
start() {
    chmod 777 "$socket"
    as_postgres "$bin/pg_ctl" -D "$data" -s -w -t 60 -l "$socket/log" \
        -o "-c listen_addresses= -c unix_socket_directories=$socket -c fsync=${FSYNC:-on}" start
}
sql() { as_postgres "$bin/psql" -h "$socket" -d postgres -v ON_ERROR_STOP=1 -Atq "$@"; }
