package stripesim

import (
	"net/http"
	"time"
	"unicode/utf8"
)

// keyLife is how long Stripe surely remembers a key (https://docs.stripe.com/api/idempotent_requests). Older ones are
// forgotten at once here, so that whoever counts on them is found out.
const keyLife = 24 * time.Hour

// maxKey is the longest idempotency key, in characters.
const maxKey = 255

// storedKey is the first result under an idempotency key, and the request it belongs to.
type storedKey struct {
	Key         string    `json:"key"`
	Method      string    `json:"method"`
	Path        string    `json:"path"`
	Fingerprint string    `json:"fingerprint"`
	Request     string    `json:"request"` // id of the request that executed
	Status      int       `json:"status"`
	Code        string    `json:"code,omitempty"` // of the error
	Body        string    `json:"body"`
	ContentType string    `json:"content_type,omitempty"`
	ShouldRetry string    `json:"should_retry,omitempty"`
	At          time.Time `json:"at"`
}

// claimKey is the third gate. It returns true when the call may go on, as the only one under its key; then the caller
// must releaseKey. Else the answer is the stored result, 400 for another request under the key, or 409 while the key is in use.
func (s *Server) claimKey(c *call) (answer, bool) {
	if utf8.RuneCountInString(c.key) > maxKey {
		return c.failed(refuse("", "", "Idempotency keys can be at most %d characters long.", maxKey)), false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[c.keyName()] {
		return c.failed(errKeyInUse(c.key)), false
	}
	stored, found := c.account.keys[c.key]
	if found && s.now().Sub(stored.At) >= keyLife {
		found = false // its row goes when this call stores its own result
	}
	switch {
	case !found:
		s.running[c.keyName()] = true
		return answer{}, true
	case stored.Method != c.method || stored.Path != c.path:
		return c.failed(errKeyOtherEndpoint(c.key, c.path, stored.Path)), false
	case stored.Fingerprint != c.fingerprint:
		return c.failed(errKeyOtherParameters(c.key)), false
	}
	return answer{
		status: stored.Status, body: []byte(stored.Body), contentType: stored.ContentType, code: stored.Code,
		original: stored.Request, replayed: true, shouldRetry: stored.ShouldRetry,
	}, false
}

func (s *Server) releaseKey(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, c.keyName())
}

// keyed tells whether the call has an idempotency key: POST only, others ignore it.
func (c *call) keyed() bool { return c.key != "" && c.method == http.MethodPost }

func (c *call) keyName() string { return c.account.id + "/" + c.key }

// PruneKeys forgets idempotency keys as if a day had passed: those of every account with this exact key, or all when
// key is empty. It returns how many. A pruned key executes again.
func (s *Server) PruneKeys(key string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for _, a := range s.accounts {
		var pruned []string
		for name := range a.keys {
			if key == "" || name == key {
				pruned = append(pruned, name)
			}
		}
		if len(pruned) == 0 {
			continue
		}
		if err := s.journal.append(entry{Account: a.id, Pruned: pruned}); err != nil {
			return total, err
		}
		for _, name := range pruned {
			delete(a.keys, name)
		}
		total += len(pruned)
	}
	return total, nil
}
