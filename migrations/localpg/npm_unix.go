//go:build darwin || freebsd || linux

package localpg

import (
	"context"
	"fmt"
	"path/filepath"
)

func (f *Folder) npmDir() string { return filepath.Join(f.path, "npm", "bin") }

func fetchBinaries(ctx context.Context, folder *Folder, who account) (binaries, error) {
	return binaries{}, fmt.Errorf("%w", ErrNoBinaries)
}
