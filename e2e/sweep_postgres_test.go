package e2e

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"
)

// postgresProxy stands between a shop and PostgreSQL. It reads along, message
// by message, and asks the line what becomes of each.
type postgresProxy struct {
	line             *line
	listener         net.Listener
	network, address string
}

// proxyPostgres starts a proxy in front of the server of a database. It returns
// the URL of the same database through the proxy.
func proxyPostgres(t *testing.T, l *line, database string) (through string) {
	t.Helper()
	config, err := pgconn.ParseConfig(database)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &postgresProxy{line: l, listener: listener}
	p.network, p.address = pgconn.NetworkAddress(config.Host, config.Port)
	t.Cleanup(func() { _ = listener.Close() })
	go p.accept()
	u, err := url.Parse(database)
	require.NoError(t, err)
	u.Host = listener.Addr().String()
	query := u.Query()
	query.Set("sslmode", "disable") // or there would be nothing to read
	query.Del("host")
	u.RawQuery = query.Encode()
	return u.String()
}

func (p *postgresProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(client)
	}
}

// session is one connection through the proxy.
type session struct {
	line           *line
	client, server net.Conn
	// from the client, and from the server
	backend  *pgproto3.Backend
	frontend *pgproto3.Frontend
	// ready is true once the server has accepted the client: from then on
	// messages belong to operations.
	ready      atomic.Bool
	statements map[string]string // prepared ones, by name
}

func (p *postgresProxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial(p.network, p.address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	s := &session{
		line: p.line, client: client, server: server, statements: map[string]string{},
		backend: pgproto3.NewBackend(client, client), frontend: pgproto3.NewFrontend(server, server),
	}
	first, err := s.backend.ReceiveStartupMessage()
	if err != nil || !send(server, first) {
		return
	}
	if _, cancels := first.(*pgproto3.CancelRequest); cancels {
		return
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		s.fromServer()
		_ = client.Close()
	}()
	s.fromClient()
	// What was sent on reaches the server although its sender is gone.
	if half, ok := server.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	<-answered
}

func send(to io.Writer, message pgproto3.Message) bool {
	bytes, err := message.Encode(nil)
	if err == nil {
		_, err = to.Write(bytes)
	}
	return err == nil
}

func (s *session) fromClient() {
	for {
		message, err := s.backend.Receive()
		if err != nil {
			return
		}
		passage := goesOn
		if s.ready.Load() {
			passage = s.line.pass(toPostgres, s.request(message))
		}
		if passage == isLost {
			s.cut()
			return
		}
		if !send(s.server, message) {
			return
		}
		if passage == isLast {
			s.line.kill()
		}
	}
}

// fromServer goes on reading when the client is gone, so that the server is not
// stopped by an answer that nobody takes.
func (s *session) fromServer() {
	gone := false
	for {
		message, err := s.frontend.Receive()
		if err != nil {
			return
		}
		passage := goesOn
		switch message := message.(type) {
		case *pgproto3.AuthenticationSASL:
			_ = s.backend.SetAuthType(pgproto3.AuthTypeSASL)
		case *pgproto3.AuthenticationSASLContinue:
			_ = s.backend.SetAuthType(pgproto3.AuthTypeSASLContinue)
		case *pgproto3.AuthenticationCleartextPassword:
			_ = s.backend.SetAuthType(pgproto3.AuthTypeCleartextPassword)
		case *pgproto3.AuthenticationMD5Password:
			_ = s.backend.SetAuthType(pgproto3.AuthTypeMD5Password)
		default:
			if s.ready.Load() && !gone {
				passage = s.line.pass(fromPostgres, response(message))
			}
		}
		if _, first := message.(*pgproto3.ReadyForQuery); first {
			s.ready.Store(true)
		}
		if passage == isLost {
			s.cut()
			return
		}
		if !gone && !send(s.client, message) {
			gone = true
		}
		if passage == isLast {
			s.line.kill()
		}
	}
}

// cut breaks the connection on both sides.
func (s *session) cut() {
	_ = s.client.Close()
	_ = s.server.Close()
}

// request names a message of the shop's by what it asks for.
func (s *session) request(message pgproto3.FrontendMessage) string {
	switch m := message.(type) {
	case *pgproto3.Query:
		return "Query " + opening(m.String)
	case *pgproto3.Parse:
		s.statements[m.Name] = opening(m.Query)
		return "Parse " + opening(m.Query)
	case *pgproto3.Bind:
		return "Bind " + s.statements[m.PreparedStatement]
	}
	return kind(message)
}

// kind is the name of a message's type.
func kind(message pgproto3.Message) string {
	name := fmt.Sprintf("%T", message)
	return name[strings.LastIndexByte(name, '.')+1:]
}

// response names a message of the server's.
func response(message pgproto3.BackendMessage) string {
	switch m := message.(type) {
	case *pgproto3.CommandComplete:
		return "CommandComplete " + string(m.CommandTag)
	case *pgproto3.ReadyForQuery:
		return "ReadyForQuery " + string(m.TxStatus)
	case *pgproto3.ErrorResponse:
		return "ErrorResponse " + m.Code
	}
	return kind(message)
}

// opening is how a statement begins.
func opening(statement string) string {
	words := strings.Fields(statement)
	return strings.Join(words[:min(4, len(words))], " ")
}
