package web_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/web"
)

// description is /openapi.json as the shop serves it.
var description = sync.OnceValues(func() (*openapi3.T, error) {
	server, err := web.New(config(&fake{}))
	if err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	doc, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
	if err != nil {
		return nil, err
	}
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.FileBodyDecoder)
	return doc, nil
})

var router = sync.OnceValues(func() (routers.Router, error) {
	doc, err := description()
	if err != nil {
		return nil, err
	}
	return legacy.NewRouter(doc)
})

// validate holds an answer against the description: its status is listed, its
// media type too, and its body follows the schema, with no member that the
// schema does not know. An address that is not described may only answer with
// a problem.
func validate(t *testing.T, r *http.Request, a answer) {
	t.Helper()
	find, err := router()
	require.NoError(t, err)
	if strings.HasPrefix(r.URL.Path, "/static/") || r.Method == http.MethodHead {
		return
	}
	route, params, err := find.FindRoute(r)
	if err != nil || (r.URL.Path != "/" && strings.HasSuffix(r.URL.Path, "/")) { // the router forgives a slash, the shop does not
		require.Contains(t, []int{403, 404, 405}, a.status, "%s %s is not described", r.Method, r.URL.Path)
		if a.header.Get("Content-Type") == checkout.ProblemType {
			doc, err := description()
			require.NoError(t, err)
			var body any
			require.NoError(t, json.Unmarshal(a.body, &body))
			require.NoError(t, doc.Components.Schemas["Problem"].Value.VisitJSON(body))
		}
		return
	}
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 a.status,
		Header:                 a.header,
		Body:                   io.NopCloser(bytes.NewReader(a.body)),
		Options:                &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	})
	require.NoError(t, err, "%s %s: %d %s", r.Method, r.URL.Path, a.status, a.body)
}

func TestDescription(t *testing.T) {
	t.Parallel()
	doc, err := description()
	require.NoError(t, err)

	t.Run("IsValid", func(t *testing.T) {
		t.Parallel()
		require.NoError(t, doc.Validate(t.Context()))
	})

	t.Run("ListsEveryCode", func(t *testing.T) {
		t.Parallel()
		var defined, listed []string
		for _, d := range checkout.Definitions() {
			defined = append(defined, d.Code)
		}
		for _, code := range doc.Components.Schemas["Problem"].Value.Properties["code"].Value.AnyOf[0].Value.Enum {
			listed = append(listed, code.(string))
		}
		require.ElementsMatch(t, defined, listed)
	})

	t.Run("ListsEveryRoute", func(t *testing.T) {
		t.Parallel()
		var described []string
		for path, item := range doc.Paths.Map() {
			for method := range item.Operations() {
				described = append(described, method+" "+path)
			}
		}
		server, err := web.New(config(&fake{}))
		require.NoError(t, err)
		var served []string
		for _, route := range server.Routes() {
			method, path, _ := strings.Cut(route, " ")
			if method != http.MethodHead && !strings.HasPrefix(path, "/static/") {
				served = append(served, method+" "+regexp.MustCompile(`:(\w+)`).ReplaceAllString(path, "{$1}"))
			}
		}
		require.ElementsMatch(t, served, described)
	})

	t.Run("ObjectsAreClosed", func(t *testing.T) {
		t.Parallel()
		for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
			if schema := doc.Components.Schemas[name].Value; schema.Type.Is("object") {
				require.NotNil(t, schema.AdditionalProperties.Has, name)
				require.False(t, *schema.AdditionalProperties.Has, name)
			}
		}
	})
}

// TestValidatorSeesWhatIsWrong shows that validate can fail: a check that
// accepts everything would prove nothing about the other tests.
func TestValidatorSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	find, err := router()
	require.NoError(t, err)
	r := get("/")
	route, params, err := find.FindRoute(r)
	require.NoError(t, err)
	for name, bad := range map[string]struct {
		status int
		kind   string
		body   string
	}{
		"a member nobody described": {200, "application/json", `{"courses":[],"extra":1}`},
		"a member that is missing":  {200, "application/json", `{}`},
		"a status nobody described": {418, "application/json", `{}`},
		"a media type":              {200, "text/plain", `hello`},
		"a problem without a code":  {500, checkout.ProblemType, `{"type":"/docs/idempotency#internal","title":"x","status":500,"detail":"x","safe_new_key":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
				RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
				Status:                 bad.status,
				Header:                 http.Header{"Content-Type": {bad.kind}},
				Body:                   io.NopCloser(strings.NewReader(bad.body)),
				Options:                &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
			})
			require.Error(t, err)
		})
	}
}
