package app

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/enrol"
	"github.com/healthscope/healthscope/controllers/inventory"
	"github.com/healthscope/healthscope/controllers/oam"
	"github.com/healthscope/healthscope/controllers/probe"
	"github.com/healthscope/healthscope/controllers/recorder"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/controllers/scope"
)

// setupTerm adds to a term what only the leader runs.
func (c *controller) setupTerm(ctx context.Context, t *term) error {
	lease := types.NamespacedName{Namespace: c.LeaseNamespace, Name: controllerLease}
	return errors.Join(
		t.Add(manager.RunnableFunc(c.view.RecordEvents)),
		enrol.Setup(ctx, t, enrol.Options{
			Namespace: c.config.Fleet.Namespace, Secrets: termCache{c.view.Secrets(), t}, States: c.view, Lease: lease, Metrics: t, TracerProvider: c.spans,
		}),
		c.setupScopes(t),
		c.setupRecorder(t, lease),
		c.setupRsync(t),
		c.setupOAM(ctx, t),
	)
}

// setupScopes adds the scope controller, its metrics, and the inventory where one is configured.
func (c *controller) setupScopes(t *term) error {
	registry := scope.NewRegistry()
	if err := t.Register(scope.NewCollector(registry)); err != nil {
		return errors.Wrap(err, "cannot register metrics")
	}
	o := scope.Options{
		View: c.view, Objects: c.objects, Registry: registry, Policy: PolicyOf(c.config.Policy), Guard: c.guard, HealthChecks: termChecks{c.checks, t},
		TracerProvider: c.spans, TrustedNamespaces: c.config.OAM.TrustedNamespaces,
	}
	if c.store != nil {
		contexts, err := recorder.SetupContexts(t, c.store, c.spans, clock.RealClock{})
		if err != nil {
			return err
		}
		o.Contexts = contexts
	}
	if c.config.Probes.Enabled {
		prober, err := probe.Setup(t, probe.Options{Clusters: c.view})
		if err != nil {
			return err
		}
		if err := t.Register(prober); err != nil {
			return errors.Wrap(err, "cannot register metrics")
		}
		o.Probes = prober
	}
	if c.config.Inventory != nil {
		options := inventoryOptionsOf(c.config)
		options.View, options.Registry, options.Metrics, options.TracerProvider = c.view, registry, t, c.spans
		options.HoldsLease, options.Takeover = t.election.lock.held, leaseDuration
		i, err := inventory.New(options)
		if err != nil {
			return err
		}
		if err := i.Setup(t); err != nil {
			return err
		}
		o.Inventory = i
	}
	return scope.Setup(t, o)
}

// inventoryOptionsOf turns a configuration, defaults filled in, into the inventory's options.
func inventoryOptionsOf(config *configv1alpha1.Configuration) inventory.Options {
	return inventory.Options{
		Config: config.Inventory, LabelKeys: config.Monitor.AllowedLabels, TrustedNamespaces: slices.Concat(config.Monitor.TrustedNamespaces, config.OAM.TrustedNamespaces),
	}
}

// termChecks are the health checks whose subscriptions end with the term.
type termChecks struct {
	*healthChecks

	term *term
}

// Subscribe calls changed whenever the expressions change, until the term ends.
func (c termChecks) Subscribe(changed func()) { c.term.onEnd(c.changed.add(changed)) }

// setupRecorder adds the recorder, which saves bundles in the AppContexts, if it is configured.
func (c *controller) setupRecorder(t *term, lease types.NamespacedName) error {
	if c.config.Recorder == nil {
		return nil
	}
	return recorder.Setup(t, recorder.Options{
		View: c.view, Store: c.store, Lease: lease, Registry: t, TracerProvider: c.spans, ReadyKeys: c.config.Recorder.ReadyKeys,
	})
}

// setupRsync adds rsync, which deploys the AppContexts, if it is enabled.
func (c *controller) setupRsync(t *term) error {
	if !c.config.Rsync.Enabled {
		return nil
	}
	o := rsyncOptionsOf(c.config)
	o.Store, o.Access, o.HealthChecks, o.Registry, o.Logger = c.store, c.view.Access, c.checks, t, c.logger.WithName("rsync")
	return rsync.Setup(t, o)
}

// rsyncOptionsOf turns a configuration, defaults filled in, into rsync's options.
func rsyncOptionsOf(config *configv1alpha1.Configuration) rsync.Options {
	return rsync.Options{DeletionOrder: config.Rsync.DeletionOrder, Policy: PolicyOf(config.Policy)}
}

// setupOAM adds the controller that maintains the references of scopes for ApplicationConfigurations, and the one that writes the
// health of Applications, each if it is enabled.
func (c *controller) setupOAM(ctx context.Context, t *term) error {
	if c.config.OAM.ApplicationConfigurations {
		if err := oam.Setup(ctx, t, oam.Options{LabelServices: c.config.OAM.LabelServices}); err != nil {
			return err
		}
	}
	if c.config.OAM.WriteApplicationHealth {
		return oam.SetupApplications(ctx, t, oam.ApplicationOptions{Metrics: t})
	}
	return nil
}
