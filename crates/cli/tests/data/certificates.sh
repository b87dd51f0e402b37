#!/bin/sh
# An authority, a server and a client that it vouches for, and a stranger, for tests of TLS.
#
#     certificates.sh FOLDER
set -eu
cd "$1"
authority() { # name
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$1" \
        -keyout "$1.authority.key" -out "$1.authority.pem" 2>/dev/null
}
vouched() { # name, authority
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" -keyout "$1.key" \
        -out "$1.csr" 2>/dev/null
    printf 'subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n' >"$1.ext"
    openssl x509 -req -in "$1.csr" -CA "$2.authority.pem" -CAkey "$2.authority.key" -CAcreateserial -days 2 \
        -extfile "$1.ext" -out "$1.pem" 2>/dev/null
}
folder() { # name, authority: as libnbd wants it
    mkdir -p "$1"
    cp ours.authority.pem "$1/ca-cert.pem"
    cp "$1.pem" "$1/client-cert.pem"
    cp "$1.key" "$1/client-key.pem"
}
authority ours
authority theirs
vouched server ours
vouched client ours
vouched stranger theirs
cp ours.authority.pem ca-cert.pem
folder client
folder stranger
