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

// waitInterval is how often it is looked whether a cluster is Connected.
const waitInterval = time.Second

// waitConnected waits until the controller sees a cluster, for as long as ctx lasts, and says on errOut what it waits for. What it
// has published of another Secret does not count: the cluster may have been removed and added again.
func waitConnected(ctx context.Context, hub client.Reader, namespace, name string, out, errOut io.Writer) error {
	var secret corev1.Secret
	if err := hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: enrol.SecretName(name)}, &secret); err != nil {
		return errors.Wrapf(err, "it has been added, and cannot be waited for: cannot read Secret %q", enrol.SecretName(name))
	}
	p := newProgress(errOut)
	defer p.end()
	standing := "nothing is known of it"
	err := wait.PollUntilContextCancel(ctx, waitInterval, true, func(ctx context.Context) (bool, error) {
		connected, now := standingOf(ctx, hub, &secret, name)
		if connected || ctx.Err() == nil { // What fails because the time is over says nothing.
			standing = now
		}
		p.sayf("waiting until cluster %q is %s: %s", name, fleet.Connected, standing)
		return connected, nil
	})
	if err != nil {
		return errors.Errorf("it has been added and is not %s: %s", fleet.Connected, printable(standing))
	}
	p.end()
	_, err = fmt.Fprintf(out, "hub: cluster %s %s\n", name, fleet.Connected)
	return err
}

// standingOf reports whether a cluster is Connected by a Secret, and says how it stands with it.
func standingOf(ctx context.Context, hub client.Reader, secret *corev1.Secret, name string) (connected bool, text string) {
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
