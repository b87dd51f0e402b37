module leyden.dev/go

go 1.21
