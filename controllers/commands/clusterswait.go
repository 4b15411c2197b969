package commands

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/enrol"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// waitInterval is how often it is looked whether a cluster is Connected, and outdatedTime how long the controller may publish of a
// cluster what was so before its Secret was written: it publishes at most once in two seconds.
const (
	waitInterval = time.Second
	outdatedTime = 3 * time.Second
)

// waitConnected waits until the controller sees a cluster whose Secret has just been written, for as long as ctx lasts, and says on
// errOut what it waits for.
func waitConnected(ctx context.Context, hub client.Reader, namespace, name string, out, errOut io.Writer) error {
	p := newProgress(errOut)
	defer p.end()
	standing := "nothing is known of it"
	p.sayf("waiting until cluster %q is %s", name, fleet.Connected)
	select {
	case <-ctx.Done():
	case <-time.After(outdatedTime):
	}
	err := wait.PollUntilContextCancel(ctx, waitInterval, true, func(ctx context.Context) (bool, error) {
		connected, now := standingOf(ctx, hub, namespace, name)
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

// standingOf reports whether a cluster is Connected, and says how it stands with it.
func standingOf(ctx context.Context, hub client.Reader, namespace, name string) (connected bool, text string) {
	r, err := enrol.Read(ctx, hub, namespace, time.Now())
	if err != nil {
		return false, err.Error()
	}
	if !r.Controller.Running {
		return false, "the controller does not run: " + r.Controller.Message
	}
	for _, c := range r.Clusters {
		if c.Name != name {
			continue
		}
		if c.Message == "" {
			return c.State == fleet.Connected, string(c.State)
		}
		return c.State == fleet.Connected, string(c.State) + ": " + c.Message
	}
	for _, s := range r.RejectedSecrets {
		if s.Name == enrol.SecretName(name) {
			return false, string(fleet.Refused) + ": " + s.Message
		}
	}
	return false, "the controller has not read its Secret yet"
}
