package localpg

// cluster is one data folder, and what lies beside it. PostgreSQL cannot read
// the data of another major version, so each has its own.
type cluster struct {
	major int
	dir   string // pg17
	log   string // pg17.log
	lock  string // pg17.lock, held by the running server
}

// account is who runs PostgreSQL, which refuses to run as root: nobody if we
// are root, else ourselves.
type account struct {
	uid, gid int
	other    bool // not ourselves
}
