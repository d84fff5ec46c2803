package stripesim

import "net/http"

// about says to whoever opens the address in a browser what this is.
func (s *Server) about(w http.ResponseWriter, _ *http.Request) {
	var endpoints []string
	for _, r := range routes() {
		endpoints = append(endpoints, r.name())
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"what": "A local Stripe for development and tests. It moves no money, and it is not made by Stripe.",
		"id":   s.config.ID, "api_version": APIVersion, "endpoints": endpoints, "does_not_imitate": notImitated,
	})
}

// notImitated is what a reader of the real Stripe's documentation would miss. The package's documentation says the same.
var notImitated = []string{}
