package stripesim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

var (
	// ErrJournalCorrupt is returned by New when a line other than the last of the journal cannot be read.
	ErrJournalCorrupt = errors.New("journal corrupt")
	// ErrJournalInUse is returned by New when another process has the journal open.
	ErrJournalInUse = errors.New("journal in use by another process")
)

// journal is the file of all that ever changed, one JSON line for each call. A nil journal keeps nothing.
type journal struct {
	path string
	file *os.File
	lock *os.File

	// failed is set for good by the first write that did not succeed: a line may then be torn in the middle of the
	// file, and whatever were written behind it could never be read again.
	failed error

	written atomic.Uint64 // lines
	syncing sync.Mutex
	synced  uint64
}

// openJournal reads the journal at path, hands its lines to apply, and rewrites it from snapshot's lines, so that it
// does not grow for ever. A torn last line is what a crash in mid-write leaves: its call was never answered, and it is dropped.
func openJournal(path string, apply func(entry) error, snapshot func(func(entry) error) error) (*journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the journal's folder: %w", err)
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, err
	}
	j := &journal{path: path, lock: lock}
	if err := j.open(apply, snapshot); err != nil {
		_ = unlockFile(lock)
		return nil, err
	}
	return j, nil
}

func (j *journal) open(apply func(entry) error, snapshot func(func(entry) error) error) error {
	if err := readJournal(j.path, apply); err != nil {
		return err
	}
	next := j.path + ".new"
	file, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("writing the compacted journal: %w", err)
	}
	j.file = file
	if err := errors.Join(snapshot(j.append), file.Sync(), os.Rename(next, j.path), syncFolder(filepath.Dir(j.path))); err != nil {
		_ = file.Close()
		return fmt.Errorf("compacting the journal: %w", err)
	}
	j.synced = j.written.Load()
	return nil
}

func readJournal(path string, apply func(entry) error) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the journal: %w", err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewReader(file)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil // what stands without a line end was never answered
		}
		if err != nil {
			return fmt.Errorf("reading the journal: %w", err)
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			if _, more := lines.Peek(1); more == io.EOF {
				return nil
			}
			return fmt.Errorf("reading line %d of %s: %w", number, path, ErrJournalCorrupt)
		}
		if err := apply(e); err != nil {
			return fmt.Errorf("reading line %d of %s: %w", number, path, ErrJournalCorrupt)
		}
	}
}

// append writes one line. It is not yet safe from a crash of the machine: see sync. The caller holds the server's mutex.
func (j *journal) append(e entry) error {
	if j == nil {
		return nil
	}
	if j.failed != nil {
		return j.failed
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encoding a journal line: %w", err)
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		j.failed = fmt.Errorf("writing the journal: %w", err)
		return j.failed
	}
	j.written.Add(1)
	return nil
}

// sync returns when every line written before the call is on disk. Callers that wait together share one fsync.
func (j *journal) sync() error {
	if j == nil {
		return nil
	}
	upto := j.written.Load()
	j.syncing.Lock()
	defer j.syncing.Unlock()
	if j.synced >= upto {
		return nil
	}
	now := j.written.Load() // before the fsync: it covers these lines, perhaps not those that come during it
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("syncing the journal: %w", err)
	}
	j.synced = now
	return nil
}

// close gives the file back. What is appended afterwards fails; closing again does nothing.
func (j *journal) close() error {
	if j == nil || errors.Is(j.failed, os.ErrClosed) {
		return nil
	}
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.failed = fmt.Errorf("writing the journal: %w", os.ErrClosed)
	return errors.Join(j.file.Sync(), j.file.Close(), unlockFile(j.lock))
}
