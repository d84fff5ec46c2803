// Package localpg starts and stops a PostgreSQL for development and tests, as
// root or not, from installed binaries or from npm's. Several processes that
// name one folder share one server; the last one out stops it. A process that
// is killed leaves the server to whoever comes next.
//
// Nothing here trusts a port: a server is ours because it runs in our folder,
// says so when asked (SHOW data_directory), and knows the folder's password.
package localpg

import (
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strconv"
)

var (
	// ErrUnsupported: this system has no way to share a server between
	// processes. By Start, Folder.Use and StopWhenIdle.
	ErrUnsupported = errors.New("no local PostgreSQL on this system: set DATABASE_URL")
	// ErrNoBinaries: no PostgreSQL 15 or later was found or could be fetched. By Start.
	ErrNoBinaries = errors.New("no PostgreSQL 15 or later found: install one (apt-get install postgresql, " +
		"brew install postgresql@17), or install npm so that one can be fetched, or set DATABASE_URL")
	// ErrUnreachable: the account that must run PostgreSQL cannot enter the
	// folder. By Start.
	ErrUnreachable = errors.New("folder cannot be reached")
	// ErrForeign: the folder, or the data in it, belongs to another user. By
	// OpenFolder and Start.
	ErrForeign = errors.New("folder belongs to another user")
)

// Options say which PostgreSQL to start, and where.
type Options struct {
	// DataDir is the folder for the server's data, its log and its password,
	// and for what else its users share. Empty: DefaultDir.
	DataDir string
	// Database is created if it is missing. Empty: payonce.
	Database string
	// Binaries is a folder that holds initdb and postgres, or npm for those
	// that npm can fetch. Empty: the environment's LOCALPG, or else what is
	// found, see findBinaries.
	Binaries string
	// Volatile trades safety for speed: nothing waits for the disk, and the
	// data is thrown away when the server did not stop cleanly. For tests.
	Volatile bool
	// Log hears about slow steps and recoveries. Nil: nobody does.
	Log *slog.Logger
}

// Server is a running PostgreSQL that this process holds on to.
type Server struct {
	folder   *Folder
	use      *Use
	who      account
	database string
	password string
	cluster  cluster
	port     int
}

// role is the one role of the server. It is a superuser: tests create
// databases and end each other's sessions.
const role = "payonce"

// URL returns the URL of a database on the server, which need not exist.
// Empty: the database of Options. It holds the password of the folder, so it
// is not for logs.
func (s *Server) URL(database string) string {
	if database == "" {
		database = s.database
	}
	return databaseURL(s.port, s.password, database)
}

// Folder returns the folder that the server lives in.
func (s *Server) Folder() *Folder { return s.folder }

// Major returns the server's major version, as in 17.
func (s *Server) Major() int { return s.cluster.major }

func databaseURL(port int, password, database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(role, password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}
