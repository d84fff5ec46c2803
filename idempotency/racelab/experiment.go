package racelab

import (
	"context"
	"slices"
	"time"
)

// Chapter is a part of the course that the experiments make.
type Chapter string

// The chapters, in teaching order.
const (
	TheQuestion     Chapter = "The question"
	TheWrongAnswers Chapter = "The wrong answers"
	TheRightOne     Chapter = "The right one"
	TheBookkeeping  Chapter = "The bookkeeping"
	WhatElse        Chapter = "What one asks next"
)

// Chapters gives the chapters in teaching order.
func Chapters() []Chapter {
	return []Chapter{TheQuestion, TheWrongAnswers, TheRightOne, TheBookkeeping, WhatElse}
}

// Experiment is one question to PostgreSQL, and the ways to answer it side by
// side. It is data; Lab.Run runs it.
type Experiment struct {
	// Name is its address: lower case and hyphens.
	Name    string  `json:"name"`
	Title   string  `json:"title"`
	Chapter Chapter `json:"chapter"`
	// About is what it shows, in a few sentences.
	About string `json:"about"`
	// Barriers says in words what is made certain, and how.
	Barriers string `json:"barriers"`
	// HoldsWhen and BreaksWhen are one sentence each.
	HoldsWhen  string `json:"holds_when"`
	BreaksWhen string `json:"breaks_when"`
	Workers    Bounds `json:"workers"`
	Trials     Bounds `json:"trials"`
	// HasWindow is true if Settings.Window may be something else than Barrier.
	HasWindow bool      `json:"has_window"`
	Variants  []Variant `json:"variants"`
}

// Sort says on which side of the comparison a variant stands.
type Sort string

// The sorts of variants.
const (
	Broken Sort = "broken"
	// Costly: right, at a price that is measured.
	Costly Sort = "costly"
	Right  Sort = "right"
)

// Variant is one way to answer the question.
type Variant struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Sort  Sort   `json:"sort"`
	About string `json:"about"`
	// SQL is what it runs, in order.
	SQL []Line `json:"sql"`
	// Uses names the function of package idempotency that the variant calls, as
	// file and symbol, where it is the real one.
	Uses *Code `json:"uses,omitempty"`
	// Shop names the place at which the shop does the same, where that is not
	// Uses.
	Shop *Code `json:"shop,omitempty"`
	// Lanes names the parties of a script, in order of worker. Empty: the
	// workers are numbered.
	Lanes []string `json:"lanes,omitempty"`
	// AlwaysHolds is true if the expected figures do not depend on a barrier.
	AlwaysHolds bool `json:"always_holds"`
	// Should is how many charges there ought to be; perWorker is one for each.
	Should int `json:"should"`
	// Headline names the figure that says it all. Empty: the money.
	Headline string `json:"headline,omitempty"`

	expect []expectation
	// tables creates what the variant works on; ledger adds the real ledger's.
	tables string
	ledger bool
	// wait is how long a duplicate waits for the first answer. 0: as long as it
	// takes. Negative: not at all.
	wait time.Duration
	// lease is that of the real ledger's claims. 0: its default.
	lease time.Duration
	// conns is the size of the workers' pool. 0: a connection for each.
	conns int
	// lockTimeout is that of the workers' sessions. 0: none.
	lockTimeout time.Duration
	// shared is true if the workers take connections from the pool themselves
	// rather than own one each.
	shared  bool
	prepare func(ctx context.Context, r *round) error
	// held looks at the database while all workers stand at the second barrier.
	held func(ctx context.Context, r *round) error
	work func(ctx context.Context, w *worker) (Answer, error)
	// after looks at what is left, before the charges are counted.
	after func(ctx context.Context, r *round) error
}

// Code is a place in this repository.
type Code struct {
	File   string `json:"file"`
	Symbol string `json:"symbol"`
}

// Mark tells what a line of SQL decides.
type Mark string

// The marks of lines.
const (
	Fault Mark = "fault" // here it goes wrong
	Cure  Mark = "cure"  // here it is put right
)

// Line is a statement, or a comment, of a variant.
type Line struct {
	Text    string `json:"text"`
	Mark    Mark   `json:"mark,omitempty"`
	Comment bool   `json:"comment,omitempty"`
}

func fault(sql string) Line { return Line{Text: sql, Mark: Fault} }
func cure(sql string) Line  { return Line{Text: sql, Mark: Cure} }
func plain(sql string) Line { return Line{Text: sql} }
func note(text string) Line { return Line{Text: text, Comment: true} }

// The functions of package idempotency that the right variants call.
var (
	usesDo       = &Code{"idempotency/do.go", "Ledger.Do"}
	usesClaim    = &Code{"idempotency/claim.go", "Ledger.Claim"}
	usesRecord   = &Code{"idempotency/record.go", "Ledger.Record"}
	usesRelease  = &Code{"idempotency/record.go", "Ledger.Release"}
	usesFinger   = &Code{"idempotency/fingerprint.go", "NewFingerprint"}
	usesReap     = &Code{"idempotency/reaper.go", "Ledger.ReapOnce"}
	usesTakeOver = &Code{"idempotency/others.go", "Ledger.TakeOver"}
)

// The shop's own ledger of events, and what stands behind it.
var (
	shopEvents = &Code{"checkout/event_rows.go", "queueEvent"}
	shopEnrols = &Code{"checkout/place_order.go", "queueEnrol"}
)

// All gives every experiment in teaching order.
func All() []*Experiment {
	return []*Experiment{
		checkThenInsert(),
		selectForUpdate(), isolationLevels(), primaryKey(), advisoryLock(), onConflictDoUpdate(),
		claimByIndex(), raceLoser(),
		sameKeyAnotherBody(), byteHash(), replayBytes(), keyScope(),
		recordedAfterCharge(), acrossTheCall(), leaseAndFence(), whatSticks(), completer(),
		twoKeysOneOrder(), clientKeys(), retention(),
		beginOnThePool(), cleanupInside(), sweptBetween(),
		webhooks(),
		skipLocked(), expiringLock(), statementRetries(),
	}
}

// Find gives the experiment of that name, or an *UnknownError.
func Find(name string) (*Experiment, error) {
	var names []string
	for _, e := range All() {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return nil, &UnknownError{Name: name, Suggestions: resembling(name, names)}
}

// Variant gives the variant of that name, or nil.
func (e *Experiment) Variant(name string) *Variant {
	for i := range e.Variants {
		if e.Variants[i].Name == name {
			return &e.Variants[i]
		}
	}
	return nil
}

func (e *Experiment) variantNames() []string {
	var names []string
	for _, v := range e.Variants {
		names = append(names, v.Name)
	}
	return names
}

// chosen gives the variants that a run is for.
func (e *Experiment) chosen(names []string) []*Variant {
	var list []*Variant
	for i := range e.Variants {
		if len(names) == 0 || slices.Contains(names, e.Variants[i].Name) {
			list = append(list, &e.Variants[i])
		}
	}
	return list
}

// perWorker is the Should of variants in which every worker has work of its own.
const perWorker = -1

// should is how many charges there ought to be with so many workers.
func (v *Variant) should(workers int) int {
	if v.Should == perWorker {
		return workers
	}
	return v.Should
}

// parties is how many workers a variant has in a run.
func (v *Variant) parties(s Settings) int {
	if len(v.Lanes) > 0 {
		return len(v.Lanes)
	}
	return s.Workers
}
