// Package app owns the set-up of the programs: it turns a configuration into a manager, and adds to it what the program
// runs. Package commands, which has the command line, calls it. It must never do the work itself: the other packages
// below controllers do, and it connects them.
//
// The manager of the controller has no leader election of its own, because
// losing its Lease would end the program. What every replica runs (the view of
// the fleet, the REST server, metrics) is added to the manager and runs until
// the program ends. What only the leader runs is added to a term: each time this
// replica is elected, leaderElection creates a term, runs it until the Lease is
// lost, and removes what the term has registered. A program that starts while
// its API server is unreachable keeps running and is not ready; it ends only
// when the API server answers that HealthScopes cannot be read. In an outage the
// leader loses its Lease, and the REST server answers 503 for what the API
// server holds; afterwards the same process is elected again.
package app
