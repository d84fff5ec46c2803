//go:build darwin || freebsd || linux

package localpg

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// nativePart is the folder of the package that holds the PostgreSQL.
const nativePart = "package/native/"

// unpack writes the native part of a package's archive into dir, readable by
// everybody whatever the umask, and restores its symbolic links. Paths that
// lead out of dir are refused.
func unpack(archive, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := untar(archive, root); err != nil {
		return fmt.Errorf("unpacking %s: %w", filepath.Base(archive), err)
	}
	if err := restoreLinks(root); err != nil {
		return fmt.Errorf("restoring links: %w", err)
	}
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return os.Chmod(path, 0o755)
	})
}

func untar(archive string, root *os.Root) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for entries := tar.NewReader(unzipped); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name, native := strings.CutPrefix(entry.Name, nativePart)
		if !native || entry.Typeflag != tar.TypeReg {
			continue
		}
		mode := fs.FileMode(0o644)
		if entry.Mode&0o111 != 0 {
			mode = 0o755
		}
		if err := write(root, name, mode, entries); err != nil {
			return err
		}
	}
}

func write(root *os.Root, name string, mode fs.FileMode, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Chmod(mode), file.Close())
}

// restoreLinks makes the symbolic links that an npm archive cannot hold. The
// package lists them, as paths from its own top; without them the server does
// not find its libraries.
func restoreLinks(root *os.Root) error {
	text, err := root.ReadFile("pg-symlinks.json")
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(text, &links); err != nil {
		return err
	}
	for _, link := range links {
		source, found := strings.CutPrefix(link.Source, "native/")
		target, foundToo := strings.CutPrefix(link.Target, "native/")
		if !found || !foundToo {
			return fmt.Errorf("%s to %s: not in the package", link.Target, link.Source)
		}
		// os.Root refuses to follow a link out of the folder, but not to make one.
		if !filepath.IsLocal(source) {
			return fmt.Errorf("%s: leads out of the package", link.Source)
		}
		relative, err := filepath.Rel(path.Dir(target), source)
		if err != nil {
			return err
		}
		if err := root.Symlink(relative, target); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
