package web

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/gorilla/securecookie"
	"github.com/labstack/echo/v4"
)

// sessionLife is how long an anonymous account lasts in a browser. The courses
// of an anonymous account are lost with its cookie, so it is long.
const sessionLife = 365 * 24 * time.Hour

// maxAccount is the longest account, in bytes: the ledger's limit for a scope.
const maxAccount = 255

// session keeps anonymous accounts: a random id in a signed cookie. Nothing is
// looked up, so knowing who asks costs no query.
type session struct {
	codec *securecookie.SecureCookie
	name  string
	https bool
}

func newSession(secret []byte, https bool) (*session, error) {
	if len(secret) < 32 {
		return nil, fmt.Errorf("web: SessionSecret has %d bytes, and must have 32 or more", len(secret))
	}
	codec := securecookie.New(secret, nil).
		MaxAge(int(sessionLife / time.Second)).
		SetSerializer(securecookie.NopEncoder{})
	name := "payonce"
	if https {
		// The prefix makes browsers refuse the cookie from a subdomain or over
		// plain http (RFC 6265bis, section 4.1.3.2).
		name = "__Host-payonce"
	}
	return &session{codec: codec, name: name, https: https}, nil
}

// account reads the cookie. A cookie that is forged, too old, or signed by
// another secret is no cookie.
func (s *session) account(r *http.Request) (string, bool) {
	cookie, err := r.Cookie(s.name)
	if err != nil {
		return "", false
	}
	var id []byte
	if err := s.codec.Decode(s.name, cookie.Value, &id); err != nil || len(id) == 0 {
		return "", false
	}
	return string(id), true
}

// start makes a new account and sets its cookie.
func (s *session) start(w http.ResponseWriter) (string, error) {
	id := "acct_" + rand.Text() // 130 bits
	value, err := s.codec.Encode(s.name, []byte(id))
	if err != nil {
		return "", fmt.Errorf("signing the session: %w", err)
	}
	http.SetCookie(w, &http.Cookie{
		Name: s.name, Value: value, Path: "/", MaxAge: int(sessionLife / time.Second),
		HttpOnly: true, Secure: s.https, SameSite: http.SameSiteLaxMode,
	})
	return id, nil
}

// anyAccount is for reading: whoever comes without a session gets one. With a
// team's own login a stranger stays one, as account "", who owns nothing.
func (s *Server) anyAccount(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		account, err := s.identify(c.Request())
		if errors.Is(err, errNoSession) {
			err = nil
			if s.session != nil {
				account, err = s.session.start(c.Response())
			}
		}
		if err != nil {
			return err
		}
		visitOf(c).account = account
		return next(c)
	}
}

// ownAccount is for reading what belongs to somebody, behind anyAccount: to a
// stranger an empty list would say that nothing was ever charged.
func ownAccount(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if visitOf(c).account == "" {
			return errNoSession
		}
		return next(c)
	}
}

// knownAccount is for everything that changes something: an account that is
// made up now could own no order, and its key would protect nothing.
func (s *Server) knownAccount(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		account, err := s.identify(c.Request())
		if err != nil {
			return err
		}
		visitOf(c).account = account
		return next(c)
	}
}

// identify says who sends the request, or returns errNoSession.
func (s *Server) identify(r *http.Request) (string, error) {
	if s.session != nil {
		if account, ok := s.session.account(r); ok {
			return account, nil
		}
		return "", errNoSession
	}
	account, ok, err := s.cfg.Account(r)
	switch {
	case err != nil:
		return "", fmt.Errorf("asking for the account: %w", err)
	case !ok:
		return "", errNoSession
	case account == "" || len(account) > maxAccount || !storable(account):
		return "", errors.New("asking for the account: it is not 1 to 255 bytes of UTF-8")
	}
	return account, nil
}

// storable is true for text that PostgreSQL can store. Anything else must be
// refused before a key is claimed, or it comes back as an error of ours.
func storable(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for i := 0; i < len(text); i++ {
		if text[i] == 0 {
			return false
		}
	}
	return true
}

// startsOver is true where a customer may begin again as a new one.
func (s *Server) startsOver() bool { return s.cfg.Demo && s.session != nil }

// startOver answers POST /session with a new account. The old one keeps what it
// has, and nobody can come back to it.
func (s *Server) startOver(c echo.Context) error {
	account, err := s.session.start(c.Response())
	if err != nil {
		return err
	}
	visitOf(c).account = account
	if wantsHTML(c) {
		return c.Redirect(http.StatusSeeOther, "/")
	}
	return c.NoContent(http.StatusNoContent)
}
