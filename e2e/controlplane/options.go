package controlplane

import (
	"fmt"
	"io"
	"regexp"

	"github.com/healthscope/healthscope/e2e/controlplane/assets"
)

// DefaultNodes is the number of fake nodes of a control plane with controllers.
const DefaultNodes = 2

// Options say what Start starts. The zero value is a bare control plane: etcd and kube-apiserver.
type Options struct {
	// Name is the name for log lines and error messages, and of the cluster in kubeconfigs. It consists of at most 40
	// lower-case letters, digits and hyphens. The default is "controlplane".
	Name string
	// Log receives a line for each step of starting and stopping. The default is nowhere.
	Log io.Writer
	// Controllers adds kube-controller-manager, kube-scheduler and kwok, so that the pods of a Deployment become Ready and
	// a pod with CrashAnnotation crashes. Without them pods stay as they are written.
	Controllers bool
	// Nodes is the number of fake nodes that kwok plays. It needs Controllers; the default is then DefaultNodes.
	Nodes int
	// AuditPolicy is an audit policy (kind Policy of audit.k8s.io/v1) in YAML. With a policy the API server writes what it
	// asks for to AuditLogPath, a JSON event a line. The default is no audit.
	AuditPolicy string
	// Dir is the directory for data, credentials and logs. It must be absent, empty, or left by an earlier control plane,
	// which then continues: same data, port and credentials. The default is a new temporary directory.
	Dir string
	// KeepData makes Stop leave the directory for a later Start with the same Dir.
	KeepData bool
	// Fsync makes etcd wait for the disk at each write, as in production. The default is not to wait, which is faster and
	// loses data only when the machine crashes.
	Fsync bool
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// complete checks the options and fills in defaults.
func (o Options) complete() (Options, error) {
	if o.Name == "" {
		o.Name = "controlplane"
	}
	if !validName.MatchString(o.Name) {
		return o, fmt.Errorf("cannot start control plane: invalid Name %q: want 1 to 40 lower-case letters, digits or hyphens", o.Name)
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	switch {
	case o.Nodes < 0:
		return o, fmt.Errorf("cannot start control plane %q: invalid Nodes %d: want 0 or more", o.Name, o.Nodes)
	case o.Nodes > 0 && !o.Controllers:
		return o, fmt.Errorf("cannot start control plane %q: invalid Nodes %d: nodes need Controllers", o.Name, o.Nodes)
	case o.Nodes == 0 && o.Controllers:
		o.Nodes = DefaultNodes
	}
	if o.KeepData && o.Dir == "" {
		return o, fmt.Errorf("cannot start control plane %q: KeepData needs Dir, or the data could not be found again", o.Name)
	}
	return o, nil
}

// programs names what must be there to start with these options.
func (o Options) programs() []string {
	needed := []string{assets.Etcd, assets.KubeAPIServer, assets.Kubectl}
	if o.Controllers {
		needed = append(needed, assets.KubeControllerManager, assets.KubeScheduler, assets.Kwok, assets.KwokManifests)
	}
	return needed
}
