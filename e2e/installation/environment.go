package installation

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/healthscope/healthscope/e2e/controlplane"
)

// Provider is the name of the cluster provider of the edges in EMCO.
const Provider = "vfw-cluster-provider"

// Environment is HealthScope in three clusters: a hub with an A&AI and an etcd with AppContexts, and two edges. The hub is a
// workload cluster, too, and may deploy to the namespaces "default" of the edges. The end-to-end tests, the demo and a
// contributor's playground use the same environment.
type Environment struct {
	// Installation is HealthScope in the hub.
	*Installation
	// Hub is the control plane of the hub.
	Hub *controlplane.ControlPlane
	// Edges are the edges. The hub does not know an edge before it has joined.
	Edges []*Edge

	etcd *controlplane.Etcd
}

// DeployFlag is the flag with which an edge is added to the hub, besides the context.
const DeployFlag = "--deploy=default"

// Edge is an edge cluster.
type Edge struct {
	// Context is the name of its context in kubeconfigs.
	Context string
	// Plane is its control plane.
	Plane *controlplane.ControlPlane
	// Member is the edge as a member of the hub; nil before it has joined.
	*Member
}

// Cluster returns the name of the edge in the hub.
func (e *Edge) Cluster() string { return Provider + "+" + e.Context }

// StartEnvironment starts three control planes and etcd in parallel, and then installs HealthScope in the hub. With an audit
// policy, the hub's API server writes an audit log. If StartEnvironment fails, it stops everything that it has started.
func StartEnvironment(ctx context.Context, o Options, auditPolicy string) (_ *Environment, err error) {
	e := &Environment{Edges: []*Edge{{Context: "edge01"}, {Context: "edge02"}}}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Stop())
		}
	}()
	o.Regions += Regions(e.Edges[0].Cluster(), e.Edges[1].Cluster())
	group, starting := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		e.Hub, err = controlplane.Start(starting, controlplane.Options{Name: "hub", Controllers: true, AuditPolicy: auditPolicy, Log: o.Log})
		return err
	})
	for _, edge := range e.Edges {
		group.Go(func() (err error) {
			edge.Plane, err = controlplane.Start(starting, controlplane.Options{Name: edge.Context, Controllers: true, Log: o.Log})
			return err
		})
	}
	group.Go(func() (err error) {
		e.etcd, err = controlplane.StartEtcd(starting, controlplane.EtcdOptions{Log: o.Log})
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	o.Contexts = e.etcd.Endpoint()
	e.Installation, err = Start(ctx, e.Hub, o)
	return e, err
}

// Join installs and starts the monitor in an edge, and adds the edge to the hub.
func (e *Environment) Join(ctx context.Context, edge *Edge) (err error) {
	edge.Member, err = e.Installation.Join(ctx, edge.Plane, edge.Cluster(), edge.Context, DeployFlag)
	return err
}

// Restart restarts all monitors and the controller, after the programs have been rebuilt. It continues after errors, and joins
// them.
func (e *Environment) Restart(ctx context.Context) error {
	errs := []error{e.StopController(), e.StopMonitor(), e.StartMonitor(ctx), e.StartController(ctx)}
	for _, edge := range e.Edges {
		if edge.Member != nil {
			errs = append(errs, edge.Restart(ctx))
		}
	}
	return errors.Join(errs...)
}

// Stop stops everything.
func (e *Environment) Stop() error {
	var errs []error
	for _, edge := range e.Edges {
		if member := edge.Member; member != nil {
			errs = append(errs, member.Stop())
		}
	}
	if e.Installation != nil {
		errs = append(errs, e.Installation.Stop())
	}
	for _, plane := range []*controlplane.ControlPlane{e.Hub, e.Edges[0].Plane, e.Edges[1].Plane} {
		if plane != nil {
			errs = append(errs, plane.Stop())
		}
	}
	if e.etcd != nil {
		errs = append(errs, e.etcd.Stop())
	}
	return errors.Join(errs...)
}

// Kubeconfigs returns the kubeconfig files of hub and edges in the format of the variable KUBECONFIG. The context of the hub is
// the current one.
func (e *Environment) Kubeconfigs() string {
	files := []string{e.Hub.KubeconfigPath()}
	for _, edge := range e.Edges {
		files = append(files, edge.Plane.KubeconfigPath())
	}
	return list(files...)
}

// Variables returns the environment variables, as NAME=value, of a terminal in which the commands of the tutorials work. PATH begins
// with the directories of kubectl and healthscope. API and METRICS are URLs of the controller, CONFIG is the path of its configuration
// file, and AAI is the URL of the tenant in A&AI, with user and password.
func (e *Environment) Variables() ([]string, error) {
	user, password, err := e.Credentials()
	if err != nil {
		return nil, err
	}
	return []string{
		"KUBECONFIG=" + e.Kubeconfigs(),
		"PATH=" + list(filepath.Dir(e.Hub.Kubectl()), e.options.Bin, os.Getenv("PATH")),
		"API=" + e.API, "METRICS=" + e.Metrics, "CONFIG=" + e.path("controller.yaml"),
		"AAI=" + strings.Replace(e.AAI, "://", "://"+user+":"+password+"@", 1) + tenantPath,
	}, nil
}

func list(paths ...string) string { return strings.Join(paths, string(os.PathListSeparator)) }
