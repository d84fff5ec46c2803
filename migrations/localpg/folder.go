package localpg

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Folder is a directory whose processes share servers: the PostgreSQL of this
// package, and others that a program may add through Use.
type Folder struct {
	path string
}

// DefaultDir returns where a folder goes when nobody named one: payonce in
// the user's cache folder; for root /var/cache/payonce, because the server
// then runs as nobody, who cannot enter /root.
func DefaultDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/payonce", nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a folder for the data: %w: set DATA_DIR", err)
	}
	return filepath.Join(cache, "payonce"), nil
}

// OpenFolder returns the folder at dir, which it makes when it is not there.
// Empty: DefaultDir. It returns ErrForeign for a folder of another user, since
// two users cannot share a server: neither may write the other's files.
func OpenFolder(dir string) (*Folder, error) {
	if dir == "" {
		var err error
		if dir, err = DefaultDir(); err != nil {
			return nil, err
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the data folder: %w", err)
	}
	if err := makeFolder(dir); err != nil {
		return nil, err
	}
	// The real path, so that every process names the data folder alike.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, fmt.Errorf("finding the data folder: %w", err)
	}
	if err := ownedByUs(dir); err != nil {
		return nil, err
	}
	return &Folder{path: dir}, nil
}

func makeFolder(dir string) error {
	err := os.MkdirAll(filepath.Dir(dir), 0o755)
	if err == nil {
		err = os.Mkdir(dir, folderMode())
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
	}
	if err == nil {
		// Again, because the umask may have taken away what the server needs.
		err = os.Chmod(dir, folderMode())
	}
	if err != nil {
		return fmt.Errorf("making the data folder: %w; set DATA_DIR to one that you can write", err)
	}
	return nil
}

// folderMode keeps others out, except that root's folder must let nobody
// through to the data.
func folderMode() fs.FileMode {
	if os.Geteuid() == 0 {
		return 0o711
	}
	return 0o700
}

// Path returns the folder's absolute path, without symbolic links.
func (f *Folder) Path() string { return f.path }

// ID returns 32 hexadecimal digits that tell this folder from any other. They
// are random, made once, and stay.
func (f *Folder) ID() (string, error) {
	id, err := f.Secret("id")
	if err != nil {
		return "", err
	}
	return id[:32], nil
}

// Secret returns 64 random hexadecimal digits that are kept in the folder
// under name, readable by its owner only. The first call makes them; any
// number of processes may call at once and get the same.
func (f *Folder) Secret(name string) (string, error) {
	path := filepath.Join(f.path, name)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.writeSecret(path); err != nil {
			return "", fmt.Errorf("keeping %s: %w", name, err)
		}
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) != 64 {
		return "", fmt.Errorf("reading %s: %s is damaged", name, path)
	}
	return secret, nil
}

// writeSecret writes a whole file and then links it to its name: nobody can
// read half of it, and of two writers the first wins.
func (f *Folder) writeSecret(path string) error {
	file, err := os.CreateTemp(f.path, "secret-*.tmp")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails, see its documentation
	_, err = fmt.Fprintln(file, hex.EncodeToString(random))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
