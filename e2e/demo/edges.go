package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/installation"
)

// hubName is the name of the hub's context in kubeconfigs.
const hubName = "hub"

// provider is the name of the provider of the edge clusters, as EMCO calls it.
const provider = "vfw-cluster-provider"

// edge is an edge cluster.
type edge struct {
	// name is the name of its context in kubeconfigs.
	name string
	cp   *controlplane.ControlPlane
	// member is what the hub has to do with it.
	member *installation.Member
}

// cluster is the name that the hub knows the edge by.
func (e *edge) cluster() string { return provider + "+" + e.name }

// stop takes down what runs of the edge.
func (e *edge) stop() error {
	var errs []error
	if e.member != nil {
		errs = append(errs, e.member.Stop())
	}
	if e.cp != nil {
		errs = append(errs, e.cp.Stop())
	}
	return errors.Join(errs...)
}

// startPlanes starts the control planes of the hub and of the edges side by side. They have to be stopped also when it fails.
func startPlanes(ctx context.Context, log io.Writer, edges []*edge) (hub *controlplane.ControlPlane, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		hub, err = controlplane.Start(ctx, controlplane.Options{Name: hubName, Log: log})
		return err
	})
	for _, e := range edges {
		group.Go(func() (err error) {
			e.cp, err = controlplane.Start(ctx, controlplane.Options{Name: e.name, Controllers: true, Log: log})
			return err
		})
	}
	return hub, group.Wait()
}

// join installs a monitor in each edge and adds the edge to the hub.
func (s *story) join(ctx context.Context) error {
	for _, e := range s.edges {
		member, err := s.hs.Join(ctx, e.cp, e.cluster(), e.name)
		if err != nil {
			return err
		}
		e.member = member
		command(s.out, fmt.Sprintf("healthscope clusters add %s --context %s", e.cluster(), e.name))
		output(s.out, member.Added)
	}
	return s.showClusters(ctx, 0, "Connected", "Connected")
}

// showClusters waits until the edges, which are sorted by name, are in these states, and shows all clusters; want is the exit code that goes with it.
func (s *story) showClusters(ctx context.Context, want int, states ...string) error {
	var out string
	err := await(ctx, func() (string, bool) {
		var code int
		out, code = s.clusters(ctx)
		lines := strings.Split(out, "\n")
		found := 0
		for i, e := range s.edges {
			for _, line := range lines {
				if fields := strings.Fields(line); len(fields) > 1 && fields[0] == e.cluster() && fields[1] == states[i] {
					found++
				}
			}
		}
		return out, found == len(s.edges) && code == want
	})
	command(s.out, "healthscope clusters")
	output(s.out, out)
	return err
}

// clusters runs `healthscope clusters`, and returns what it printed and its exit code.
func (s *story) clusters(ctx context.Context) (out string, code int) {
	out, err := s.hs.Clusters(ctx)
	var exit interface{ ExitCode() int }
	switch {
	case err == nil:
		return out, 0
	case errors.As(err, &exit):
		return out, exit.ExitCode()
	default:
		return err.Error(), -1
	}
}

// cutOff ends the API server of the last edge, as a cut cable would.
func (s *story) cutOff(context.Context) error {
	e := s.edges[len(s.edges)-1]
	output(s.out, fmt.Sprintf("\nThe API server of %s is killed.", e.cluster()))
	return e.cp.StopAPIServer()
}

// comeBack starts it again.
func (s *story) comeBack(ctx context.Context) error {
	e := s.edges[len(s.edges)-1]
	output(s.out, fmt.Sprintf("\nThe API server of %s is started again.", e.cluster()))
	if err := e.cp.StartAPIServer(ctx); err != nil {
		return err
	}
	return e.member.Restart(ctx)
}

// showLost waits until the scope says that a cluster is out of sight, and shows what it says.
func (s *story) showLost(ctx context.Context) error {
	if err := s.until(ctx, "hs/vfw", "{.status.health} {.status.clustersReachable}", "unknown 1/2"); err != nil {
		return err
	}
	return errors.Join(
		s.showClusters(ctx, 1, "Connected", "Unreachable"),
		s.show(ctx, "get", "hs"),
		s.show(ctx, "get", "hs", "vfw", "-o", "jsonpath={range .status.apps[*].clusters[?(@.lastSeen)]}{.name}: {.total} resources {.state}, last seen {.lastSeen}{'\\n'}{end}{.status.firstCulprit}{'\\n'}{.status.culprits[0].cause}{'\\n'}"),
	)
}

// kubeconfigs are the files of hub and edges, whose contexts kubectl sees together.
func (s *story) kubeconfigs() string {
	files := []string{s.cp.KubeconfigPath()}
	for _, e := range s.edges {
		files = append(files, e.cp.KubeconfigPath())
	}
	return strings.Join(files, string(os.PathListSeparator))
}
