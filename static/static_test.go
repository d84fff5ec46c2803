package static_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/static"
)

func get(t *testing.T, method, path string) *http.Response {
	t.Helper()
	rec := httptest.NewRecorder()
	static.Handler().ServeHTTP(rec, httptest.NewRequest(method, path, nil))
	return rec.Result()
}

func TestEveryFileIsServedForGoodUnderTheOneHash(t *testing.T) {
	t.Parallel()
	entries, err := static.FS.ReadDir(".")
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	types := map[string]string{"pay.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"}
	for _, entry := range entries {
		want, err := static.FS.ReadFile(entry.Name())
		require.NoError(t, err)
		require.NotEmpty(t, want, entry.Name())

		res := get(t, http.MethodGet, static.Path(entry.Name()))
		require.Equal(t, http.StatusOK, res.StatusCode, entry.Name())
		got, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, "public, max-age=31536000, immutable", res.Header.Get("Cache-Control"))
		require.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"))
		if wantType, ok := types[entry.Name()]; ok {
			require.Equal(t, wantType, res.Header.Get("Content-Type"))
		}
		require.NotEmpty(t, res.Header.Get("Content-Type"))

		head := get(t, http.MethodHead, static.Path(entry.Name()))
		require.Equal(t, http.StatusOK, head.StatusCode)
	}
}

func TestNothingElseIsServedOrCached(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/static/",
		"/static/pay.css",
		"/static/0000000000000000/pay.css",
		"/static/" + static.Hash,
		"/static/" + static.Hash + "/",
		"/static/" + static.Hash + "/.",
		"/static/" + static.Hash + "/static.go",
		"/static/" + static.Hash + "/../static.go",
		"/static/" + static.Hash + "//pay.css",
	} {
		res := get(t, http.MethodGet, path)
		require.Equal(t, http.StatusNotFound, res.StatusCode, path)
		require.Equal(t, "no-store", res.Header.Get("Cache-Control"), path)
	}
	res := get(t, http.MethodPost, static.Path("pay.css"))
	require.Equal(t, http.StatusMethodNotAllowed, res.StatusCode)
	require.Equal(t, "GET, HEAD", res.Header.Get("Allow"))
}

func TestPathOfAFileThatIsNotThereIsABug(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() { static.Path("pay.csss") })
}
