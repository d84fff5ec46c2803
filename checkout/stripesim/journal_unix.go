//go:build unix

package stripesim

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFile opens a file and takes its lock, which ends with the process however it ends. It returns ErrJournalInUse.
func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the journal's lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("locking %s: %w", path, ErrJournalInUse)
	}
	return file, nil
}

// unlockFile gives the lock back. Closing alone would not, while a child that was just forked still has the descriptor.
func unlockFile(file *os.File) error {
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}

// syncFolder makes a rename inside the folder survive a crash of the machine.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	return folder.Sync()
}
