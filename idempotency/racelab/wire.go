package racelab

import (
	"context"
	"io"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
)

// wire is the network between the workers and PostgreSQL, which can lose a
// reply: the server has done what it was told, and nobody hears of it.
type wire struct{ lose atomic.Bool }

func (w *wire) dial(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &lossy{Conn: conn, wire: w}, nil
	}
}

// lossy is a connection that loses the next reply, and then is dead.
type lossy struct {
	net.Conn
	wire *wire
}

// Read waits until the server answers, so what it was sent has been done.
func (c *lossy) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.wire.lose.CompareAndSwap(true, false) {
		_ = c.Conn.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}
