// Package racelab runs every broken and every right way to use an idempotency
// key against a real PostgreSQL, and returns what happened: charges and money,
// how the workers ended, what it cost, and a time line.
package racelab
