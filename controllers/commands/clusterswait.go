package commands

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/enrol"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// waitInterval is the interval between checks whether a cluster is Connected.
const waitInterval = time.Second

// waitConnected waits until a cluster is Connected, or until ctx ends, and shows on errOut what it waits for. It ignores the state of a
// cluster with another Secret: the cluster may have been removed and added again.
func waitConnected(ctx context.Context, hub client.Reader, namespace, name string, out, errOut io.Writer) error {
	var secret corev1.Secret
	if err := hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: enrol.SecretName(name)}, &secret); err != nil {
		return errors.Wrapf(err, "it has been added, and cannot be waited for: cannot read Secret %q", enrol.SecretName(name))
	}
	p := newProgress(errOut)
	defer p.clear()
	state := "nothing is known of it"
	err := wait.PollUntilContextCancel(ctx, waitInterval, true, func(ctx context.Context) (bool, error) {
		connected, current := connectionState(ctx, hub, &secret, name)
		if connected || ctx.Err() == nil { // A failure because ctx has ended says nothing about the cluster.
			state = current
		}
		p.showf("waiting until cluster %q is %s: %s", name, fleet.Connected, state)
		return connected, nil
	})
	if err != nil {
		return errors.Errorf("it has been added and is not %s: %s", fleet.Connected, printable(state))
	}
	p.clear()
	_, err = fmt.Fprintf(out, "hub: cluster %s %s\n", name, fleet.Connected)
	return err
}

// connectionState reports whether a cluster is Connected with a Secret, and describes its state.
func connectionState(ctx context.Context, hub client.Reader, secret *corev1.Secret, name string) (connected bool, text string) {
	r, err := enrol.Read(ctx, hub, secret.Namespace, time.Now())
	if err != nil {
		return false, err.Error()
	}
	if !r.Controller.Running {
		return false, "the controller does not run: " + r.Controller.Message
	}
	for _, c := range r.Clusters {
		if c.Name != name || c.SecretUID != "" && c.SecretUID != secret.UID {
			continue
		}
		if c.Message == "" {
			return c.State == fleet.Connected, string(c.State)
		}
		return c.State == fleet.Connected, string(c.State) + ": " + c.Message
	}
	for _, s := range r.RejectedSecrets {
		if s.Name == secret.Name {
			return false, string(fleet.Refused) + ": " + s.Message
		}
	}
	return false, "the controller has not read its Secret yet"
}
