//go:build !unix

package stripesim

import (
	"fmt"
	"os"
)

// lockFile opens the lock file. Without flock nothing keeps a second process out but the port both would listen on.
func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the journal's lock: %w", err)
	}
	return file, nil
}

func unlockFile(file *os.File) error { return file.Close() }

func syncFolder(string) error { return nil }
