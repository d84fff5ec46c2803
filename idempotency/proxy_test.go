package idempotency

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// fate is what becomes of one round trip.
type fate int

const (
	passes       fate = iota
	answerLost        // the server does it all; the connection is gone before the answer
	neverArrives      // the connection is gone before the server hears of it
	arrivesLate       // the client's connection is gone; the server hears of it after proxy.deliver
	refused           // not only this connection: from now on there is no server
)

func (f fate) String() string {
	return [...]string{"Passes", "AnswerLost", "NeverArrives", "ArrivesLate", "Refused"}[f]
}

// trip is one round trip: the statements that travel together.
type trip []string

// has is true if one of the statements contains text.
func (r trip) has(text string) bool {
	for _, sql := range r {
		if strings.Contains(sql, text) {
			return true
		}
	}
	return false
}

// proxy stands between a pool and the server, and cuts the line where a test
// wants it cut.
type proxy struct {
	listener         net.Listener
	network, address string
	late             chan struct{}
	lateOnce         sync.Once
	delivered        chan struct{}

	mu   sync.Mutex
	rule func(trip) fate
	away bool
}

// newProxy makes a proxy, and a pool of n connections that go through it.
func newProxy(d *database, n int32) (*proxy, *pgxpool.Pool) {
	d.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(d.t, err)
	p := &proxy{listener: listener, late: make(chan struct{}), delivered: make(chan struct{}, 16)}
	to := d.config().ConnConfig
	p.network, p.address = pgconn.NetworkAddress(to.Host, to.Port)
	go p.accept()
	d.t.Cleanup(func() {
		_ = listener.Close()
		p.lateOnce.Do(func() { close(p.late) })
	})
	return p, d.pool(n, p.between)
}

// between makes a pool go through the proxy.
func (p *proxy) between(c *pgxpool.Config) {
	at := p.listener.Addr().(*net.TCPAddr)
	c.ConnConfig.Host, c.ConnConfig.Port = "127.0.0.1", uint16(at.Port)
	c.ConnConfig.TLSConfig, c.ConnConfig.Fallbacks = nil, nil // the proxy must read along
}

// on sets what becomes of the round trips from now on. The rule may do things
// on the way: the trip waits for it.
func (p *proxy) on(rule func(trip) fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = rule
}

// once gives the next round trip with text in it a fate, and lets all others pass.
func (p *proxy) once(text string, f fate) {
	done := false
	p.on(func(r trip) fate {
		if done || !r.has(text) {
			return passes
		}
		done = true
		return f
	})
}

// deliver lets what arrives late arrive, and waits until the server has done it.
func (p *proxy) deliver(t testing.TB) {
	t.Helper()
	p.lateOnce.Do(func() { close(p.late) })
	eventually(t, "the late statement is executed", func() bool { return len(p.delivered) > 0 })
}

func (p *proxy) judge(r trip) fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := passes
	switch {
	case p.away:
		return refused
	case p.rule != nil && len(r) > 0:
		f = p.rule(r)
	}
	p.away = f == refused
	return f
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(client)
	}
}

// line is one connection through the proxy.
type line struct {
	client, server net.Conn
	mu             sync.Mutex
	muted          bool
	finished       chan struct{} // closed when a muted server has answered, or is gone
}

func (p *proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	p.mu.Lock()
	away := p.away
	p.mu.Unlock()
	if away {
		return
	}
	server, err := (&net.Dialer{}).DialContext(context.Background(), p.network, p.address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	l := &line{client: client, server: server, finished: make(chan struct{})}

	var size [4]byte // the first message has no type
	if _, err := io.ReadFull(client, size[:]); err != nil {
		return
	}
	rest := make([]byte, binary.BigEndian.Uint32(size[:])-4)
	if _, err := io.ReadFull(client, rest); err != nil {
		return
	}
	if _, err := server.Write(append(size[:], rest...)); err != nil {
		return
	}
	go l.answers()
	p.trips(l)
}

// answers passes on what the server says, unless the line is muted.
func (l *line) answers() {
	defer close(l.finished)
	defer func() { _ = l.client.Close() }()
	for {
		message, err := readMessage(l.server)
		if err != nil {
			return
		}
		l.mu.Lock()
		muted := l.muted
		l.mu.Unlock()
		if muted && message[0] == 'Z' { // ready for the next query: it is done
			return
		}
		if !muted {
			if _, err := l.client.Write(message); err != nil {
				return
			}
		}
	}
}

// trips passes on what the client says, one round trip at a time.
func (p *proxy) trips(l *line) {
	statements := map[string]string{}
	var (
		bytes []byte
		r     trip
	)
	for {
		message, err := readMessage(l.client)
		if err != nil {
			return
		}
		bytes = append(bytes, message...)
		switch message[0] {
		case 'P':
			var parse pgproto3.Parse
			if parse.Decode(message[5:]) == nil {
				statements[parse.Name] = parse.Query
			}
		case 'B':
			var bind pgproto3.Bind
			if bind.Decode(message[5:]) == nil {
				r = append(r, statements[bind.PreparedStatement])
			}
		case 'Q':
			r = append(r, strings.TrimRight(string(message[5:]), "\x00"))
		}
		if message[0] != 'S' && message[0] != 'Q' && message[0] != 'p' {
			continue
		}
		f := p.judge(r)
		if f == neverArrives || f == refused {
			return // and close both ends
		}
		if f != passes {
			l.mu.Lock()
			l.muted = true
			l.mu.Unlock()
		}
		if f == arrivesLate {
			_ = l.client.Close()
			<-p.late
		}
		if _, err := l.server.Write(bytes); err != nil {
			return
		}
		if f != passes {
			<-l.finished
			p.delivered <- struct{}{}
			return
		}
		bytes, r = nil, nil
	}
}

// readMessage reads a message: a type, a length and a body.
func readMessage(from io.Reader) ([]byte, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	message := make([]byte, 1+binary.BigEndian.Uint32(head[1:]))
	copy(message, head)
	_, err := io.ReadFull(from, message[5:])
	return message, err
}
