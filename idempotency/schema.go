package idempotency

import _ "embed"

// Schema creates the two tables of the ledger, idempotency_keys and
// key_history, in the current schema of a PostgreSQL 15 or later. It is one
// script of several statements and is meant to run once, as a migration.
//
//go:embed schema.sql
var Schema string
