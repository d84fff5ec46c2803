//go:build !darwin && !freebsd && !linux

package localpg

import (
	"context"
	"os/exec"
	"time"
)

// Use is this process's hold on a server that the processes of a folder share.
type Use struct{}

// Use returns ErrUnsupported.
func (f *Folder) Use(context.Context, string, func(context.Context) error) (*Use, error) {
	return nil, ErrUnsupported
}

// Release does nothing: there are no holds on this system.
func (u *Use) Release(context.Context, func(context.Context) error) error { return nil }

// Start returns ErrUnsupported.
func Start(context.Context, Options) (*Server, error) { return nil, ErrUnsupported }

// Stop does nothing: there are no servers on this system.
func (s *Server) Stop(context.Context) error { return nil }

// StopWhenIdle returns ErrUnsupported.
func StopWhenIdle(context.Context, string, time.Duration) error { return ErrUnsupported }

// Detach does nothing: there is no local server to start on this system.
func Detach(*exec.Cmd) {}

func ownedByUs(string) error { return nil }

// Watched tells that nobody watches.
func (f *Folder) Watched() (bool, error) { return false, nil }
