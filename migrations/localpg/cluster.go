package localpg

// cluster is one data folder, and what lies beside it. PostgreSQL cannot read
// the data of another major version, so each has its own.
type cluster struct {
	major int
	dir   string // pg17
	log   string // pg17.log
	lock  string // pg17.lock, held by the running server
}
