// Package static holds the stylesheet, scripts and pictures of the shop, built into the program, and serves them.
//
// Every file is served under /static/<hash>/, where the hash covers all of them together: a file may then be cached for
// good, and a file that names another by a relative path (an ES module, a picture in a stylesheet) always gets the one
// that it was built with.
package static

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// FS holds the files as they are in the repository.
//
//go:embed *.css *.js *.svg
var FS embed.FS

// Prefix is the path under which Handler is to be mounted.
const Prefix = "/static/"

// Hash names this set of files: the first 16 hex digits of a SHA-256 over all names and contents.
var Hash = hashOf(FS)

// types are the media types served, by extension. They are listed here because the system's own table differs from
// machine to machine, and with nosniff a script of the wrong type does not run.
var types = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// Path returns the URL path of a file: "/static/<hash>/pay.css". It panics if there is no such file, since every name is
// written in the code that asks.
func Path(name string) string {
	if _, err := fs.Stat(FS, name); err != nil {
		panic(fmt.Sprintf("static: bug: no file %q", name))
	}
	return Prefix + Hash + "/" + name
}

// Handler serves GET and HEAD of Prefix + Hash + "/" + name, to be cached for good. Everything else under Prefix is 404
// and not cached, another hash included: while two versions of the shop run side by side, the old one must not answer
// for a file of the new one, or a cache would keep the wrong bytes for a year.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed)
			return
		}
		name, ok := strings.CutPrefix(r.URL.Path, Prefix+Hash+"/")
		if !ok {
			refuse(w, http.StatusNotFound)
			return
		}
		content, err := FS.ReadFile(name)
		mediaType := types[path.Ext(name)]
		if err != nil || mediaType == "" {
			refuse(w, http.StatusNotFound)
			return
		}
		header := w.Header()
		header.Set("Content-Type", mediaType)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	})
}

func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, http.StatusText(status), status)
}

// hashOf covers name and length beside content, so that no two sets of files run together into the same bytes.
func hashOf(files fs.FS) string {
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		for _, part := range [][]byte{[]byte(name), content} {
			sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
			sum.Write(part)
		}
		return nil
	})
	if err != nil {
		panic("static: bug: reading embedded files: " + err.Error())
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}
