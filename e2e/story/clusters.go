package story

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/healthscope/healthscope/e2e/installation"
)

// join installs a monitor in each edge and adds the edge to the hub.
func (s *Story) join(ctx context.Context) error {
	for _, e := range s.env.Edges {
		add := s.env.Join
		if e.Member != nil {
			add = func(ctx context.Context, e *installation.Edge) error { return e.Add(ctx) } // Adding it again changes nothing.
		}
		if err := add(ctx, e); err != nil {
			return err
		}
		command(s.out, fmt.Sprintf("healthscope clusters add %s --context %s %s", e.Cluster(), e.Context, installation.DeployFlag))
		output(s.out, e.Added)
	}
	return s.showClusters(ctx, 0, "Connected", "Connected")
}

// showClusters waits until the edges, sorted by name, have these states, and shows all clusters. want is the expected exit code.
func (s *Story) showClusters(ctx context.Context, want int, states ...string) error {
	var out string
	err := await(ctx, func() (string, bool) {
		var code int
		out, code = s.clusters(ctx)
		lines := strings.Split(out, "\n")
		found := 0
		for i, e := range s.env.Edges {
			for _, line := range lines {
				if fields := strings.Fields(line); len(fields) > 1 && fields[0] == e.Cluster() && fields[1] == states[i] {
					found++
				}
			}
		}
		return out, found == len(s.env.Edges) && code == want
	})
	command(s.out, "healthscope clusters")
	output(s.out, out)
	return err
}

// clusters runs `healthscope clusters`, and returns what it printed and its exit code.
func (s *Story) clusters(ctx context.Context) (out string, code int) {
	out, err := s.env.Clusters(ctx)
	if code = exitCode(err); code < 0 {
		out = err.Error()
	}
	return out, code
}

// exitCode returns the exit code of a program, or -1 if it did not run.
func exitCode(err error) int {
	var exit interface{ ExitCode() int }
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		return -1
	}
}

// cutOff stops the API server of the last edge, so that the hub cannot reach the edge.
func (s *Story) cutOff(context.Context) error {
	e := s.env.Edges[len(s.env.Edges)-1]
	output(s.out, fmt.Sprintf("\nThe API server of %s is killed.", e.Cluster()))
	return e.Plane.StopAPIServer()
}

// comeBack starts the API server of the last edge again.
func (s *Story) comeBack(ctx context.Context) error {
	e := s.env.Edges[len(s.env.Edges)-1]
	output(s.out, fmt.Sprintf("\nThe API server of %s is started again.", e.Cluster()))
	if err := e.Plane.StartAPIServer(ctx); err != nil {
		return err
	}
	return e.Restart(ctx)
}

// showLost waits until the scope reports that a cluster is unreachable, and shows its status.
func (s *Story) showLost(ctx context.Context) error {
	if err := s.until(ctx, "hs/vfw", "{.status.health} {.status.clustersReachable}", "unknown 1/2"); err != nil {
		return err
	}
	return errors.Join(
		s.showClusters(ctx, 1, "Connected", "Unreachable"),
		s.show(ctx, "get", "hs"),
		s.show(ctx, "get", "hs", "vfw", "-o", "jsonpath={range .status.apps[*].clusters[?(@.lastSeen)]}{.name}: {.total} resources {.state}, last seen {.lastSeen}{'\\n'}{end}{.status.firstCulprit}{'\\n'}{.status.culprits[0].cause}{'\\n'}"),
	)
}
