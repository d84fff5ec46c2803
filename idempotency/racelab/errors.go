package racelab

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	// ErrUnknown: no experiment, or no variant of it, has that name. By Find
	// and Run, as an *UnknownError.
	ErrUnknown = errors.New("no such experiment")
	// ErrBounds: a setting is outside of what is allowed. By Run, as a
	// *BoundsError.
	ErrBounds = errors.New("out of bounds")
	// ErrNoWindow: the experiment is a script, in which one step follows the
	// other, so there is no barrier to take away. By Run.
	ErrNoWindow = errors.New("a script has no barrier to take away")
	// ErrNotPermitted: the database's role may not create schemas, or the
	// server takes no writes. By Run.
	ErrNotPermitted = errors.New("the role may not create a schema")
	// ErrBusy: the database has no connection left for the workers. By Run.
	ErrBusy = errors.New("the database is too busy")
	// ErrDeadline: the run, one of its trials or one of their statements did
	// not end in time, and the run was given up. By Run.
	ErrDeadline = errors.New("the run took too long")
)

// UnknownError is ErrUnknown, with what may have been meant.
type UnknownError struct {
	Name string
	// Of is the experiment, if it is a variant that is not known.
	Of string
	// Suggestions are names that resemble it, the nearest first.
	Suggestions []string
}

func (e *UnknownError) Error() string {
	name := e.Name
	if len(name) > nameShown {
		name = name[:nameShown] + "..."
	}
	text := fmt.Sprintf("no experiment is called %q", name)
	if e.Of != "" {
		text = fmt.Sprintf("%s has no variant called %q", e.Of, name)
	}
	if len(e.Suggestions) > 0 {
		text += ": did you mean " + strings.Join(e.Suggestions, " or ") + "?"
	}
	return text
}

// nameShown is how much of an unknown name is repeated.
const nameShown = 60

// Unwrap gives ErrUnknown.
func (e *UnknownError) Unwrap() error { return ErrUnknown }

// BoundsError is ErrBounds, with what was asked for and what is allowed.
type BoundsError struct {
	Setting       string
	Got, Min, Max int
}

func (e *BoundsError) Error() string {
	if e.Min == e.Max {
		return fmt.Sprintf("%s cannot be chosen here: the experiment has its own %d", e.Setting, e.Min)
	}
	return fmt.Sprintf("%d %s: choose from %d to %d", e.Got, e.Setting, e.Min, e.Max)
}

// Unwrap gives ErrBounds.
func (e *BoundsError) Unwrap() error { return ErrBounds }

// SQLSTATEs (https://www.postgresql.org/docs/current/errcodes-appendix.html).
const (
	insufficientPrivilege = "42501"
	readOnlyTransaction   = "25006"
	tooManyConnections    = "53300"
	cannotConnectNow      = "57P03"
	connectionLimit       = "53400"
	serializationFailure  = "40001"
	queryCanceled         = "57014" // by statement_timeout
	idleInTransaction     = "25P03" // for longer than its timeout
)

// sqlState gives the server's code, or nothing if err is not the server's.
func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// meaning says what an error of the database means to whoever asked for the run.
func meaning(err error) error {
	switch sqlState(err) {
	case insufficientPrivilege:
		return fmt.Errorf("%w: GRANT CREATE ON DATABASE to it, or use another role: %w", ErrNotPermitted, err)
	case readOnlyTransaction:
		return fmt.Errorf("%w: this server takes no writes, so connect to the primary: %w", ErrNotPermitted, err)
	case tooManyConnections, connectionLimit, cannotConnectNow:
		return fmt.Errorf("%w: try fewer workers, or again in a moment: %w", ErrBusy, err)
	case queryCanceled, idleInTransaction:
		return fmt.Errorf("%w, more than %s for one statement: %w", ErrDeadline, statementLimit, err)
	}
	return err
}

// resembling gives the names closest to a name that does not exist.
func resembling(name string, names []string) []string {
	name = strings.ToLower(strings.TrimSpace(name[:min(len(name), nameShown)]))
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	for _, n := range names {
		d := min(distance(name, n), distance(name, n[:min(len(n), len(name))]), distance(name, n[:min(len(n), len(name)+1)]))
		if len(name) >= 3 && (strings.Contains(n, name) || strings.Contains(name, n)) {
			d = min(d, 1)
		}
		if d <= max(2, len(name)/3) {
			near = append(near, candidate{n, d})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.distance - b.distance })
	var list []string
	for _, c := range near[:min(3, len(near))] {
		list = append(list, c.name)
	}
	return list
}

// distance is how many letters must change to make b of a (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := last
			if a[i] != b[j] {
				changed++
			}
			last = row[j+1]
			row[j+1] = min(changed, last+1, row[j]+1)
		}
	}
	return row[len(b)]
}
