package installation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/healthscope/healthscope/e2e/controlplane"
)

// Member is a workload cluster of an installation: a monitor runs in it, and the hub knows it.
type Member struct {
	// Name is the name of the cluster in the hub, and Context the name of its context in kubeconfigs.
	Name, Context string
	// Added is the output of the command that added the cluster to the hub.
	Added string

	own   *Installation
	hub   *Installation
	flags []string
}

// Regions returns Options.Regions for clusters whose resources belong to the same tenant in A&AI as the hub's own resources.
func Regions(clusters ...string) string {
	var text strings.Builder
	for _, name := range clusters {
		fmt.Fprintf(&text, "  - {cluster: %s, namespace: \"*\", cloudOwner: %s, cloudRegionId: %s, tenantId: %s}\n", name, CloudOwner, CloudRegionID, TenantID)
	}
	return text.String()
}

// Join installs the monitor in another cluster, starts it, and adds the cluster to the hub with `healthscope clusters add` and
// flags. kubecontext is the name of the control plane. If Join fails, it stops everything that it has started.
func (i *Installation) Join(ctx context.Context, cp *controlplane.ControlPlane, name, kubecontext string, flags ...string) (*Member, error) {
	options := Options{Root: i.options.Root, Bin: i.options.Bin, Dir: i.path("member-" + name), Log: i.options.Log, Helm: i.options.Helm}
	if err := os.Mkdir(options.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make a directory for cluster %q: %w", name, err)
	}
	m := &Member{Name: name, Context: kubecontext, own: &Installation{cp: cp, options: options}, hub: i, flags: flags}
	return m, m.own.steps(ctx, []step{
		{fmt.Sprintf("install the monitor in cluster %q", name), m.own.installMonitor},
		{"write its configuration and credentials", func(ctx context.Context) error { return m.own.prepareFor(ctx, "monitor") }},
		{"start it", m.own.StartMonitor},
		{"add the cluster to the hub", m.Add},
	})
}

// installMonitor installs the objects that a cluster without a hub needs.
func (i *Installation) installMonitor(ctx context.Context) error {
	if i.options.Helm != nil {
		return i.installChart(ctx, "monitor")
	}
	file := func(names ...string) string {
		return filepath.Join(append([]string{i.options.Root, "config"}, names...)...)
	}
	return i.cp.InstallManifests(ctx,
		file("crd", "k8splugin.io_resourcebundlestates.yaml"), file("rbac", "namespace.yaml"),
		file("rbac", "monitor_role.yaml"), file("rbac", "monitor_kinds.yaml"), file("rbac", "monitor_binding.yaml"),
	)
}

// Add adds the cluster to the hub, or repairs its registration.
func (m *Member) Add(ctx context.Context) (err error) {
	args := []string{"add", m.Name, "--context", m.Context, "--kubeconfig", m.own.cp.KubeconfigPath()}
	m.Added, err = m.hub.Clusters(ctx, append(args, m.flags...)...)
	return err
}

// Remove removes the cluster from the hub, and returns the output of the command.
func (m *Member) Remove(ctx context.Context) (string, error) {
	return m.hub.Clusters(ctx, "remove", m.Name, "--context", m.Context, "--kubeconfig", m.own.cp.KubeconfigPath())
}

// Restart restarts the member's monitor, as a kubelet does after its exit. The monitor exits when it loses its Lease, for
// instance because the API server is not available.
func (m *Member) Restart(ctx context.Context) error {
	if err := m.own.KillMonitor(); err != nil {
		return err
	}
	return m.own.StartMonitor(ctx)
}

// Kill kills the member's monitor with SIGKILL. It is no error if the monitor has ended already.
func (m *Member) Kill() error { return m.own.KillMonitor() }

// Stop stops the member's monitor.
func (m *Member) Stop() error { return m.own.Stop() }

// Clusters runs `healthscope clusters` with arguments, and returns its standard output. The error contains its standard error.
func (i *Installation) Clusters(ctx context.Context, args ...string) (string, error) {
	return i.run(ctx, append([]string{"clusters"}, args...)...)
}

// Contexts runs `healthscope context` with arguments. Its results are those of Clusters.
func (i *Installation) Contexts(ctx context.Context, args ...string) (string, error) {
	return i.run(ctx, append([]string{"context", "--config", i.ContextsConfiguration()}, args...)...)
}

// run runs a command of the program in the root of the source tree.
func (i *Installation) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(i.options.Bin, "healthscope"), args...) //nolint:gosec // Our own program.
	cmd.Dir = i.options.Root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+i.cp.KubeconfigPath())
	var said, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &problems
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("healthscope %s: %w: %s", args[0], exit, problems.String())
	}
	return said.String(), err
}
