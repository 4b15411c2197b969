package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/access"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/api"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// addStatusAPI adds the status REST server to every replica: a listener for callers with a token and one for callers
// without, each unless it is disabled. store holds the AppContexts; it may be nil.
func addStatusAPI(mgr ctrl.Manager, o *Options, config *configv1alpha1.Configuration, view *fleet.View, checks *healthChecks, store *appcontext.Store, tracker *observe.Tracker, logger logr.Logger) error {
	authenticated := config.API.BindAddress != configv1alpha1.NoServer
	anonymous := cmp.Or(config.API.AnonymousBindAddress, configv1alpha1.NoServer) != configv1alpha1.NoServer
	if !authenticated && !anonymous {
		return nil
	}
	scopes := newCachedScopes(mgr, view, tracker)
	documents, err := newDocuments(mgr, config, view, checks, store)
	if err != nil {
		return err
	}
	options := api.Options{
		Scopes: scopes, Documents: documents, DefaultNamespace: config.API.DefaultNamespace, Ready: view.Ready, Current: scopes.current, Version: o.Version,
		Logger: slog.New(logr.ToSlogHandler(logger)),
	}
	if config.Rsync.Enabled {
		options.Deployments = rsync.Groups{Store: store}
	}
	if anonymous {
		if err := addServer(mgr, config.API.AnonymousBindAddress, options, nil); err != nil {
			return err
		}
	}
	if authenticated {
		if err := addAuthenticatedServer(mgr, &config.API, options); err != nil {
			return err
		}
	}
	return errors.Wrap(mgr.Add(scopes), "cannot watch HealthScopes")
}

// addAuthenticatedServer adds the listener for callers with a token.
func addAuthenticatedServer(mgr ctrl.Manager, config *configv1alpha1.API, options api.Options) error {
	guard, err := access.NewGuard(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	options.Guard = guard
	if config.CertFile == "" {
		return addServer(mgr, config.BindAddress, options, nil)
	}
	tlsConfig, err := servingTLSConfig(mgr, config.CertFile, config.KeyFile, "the status REST server")
	if err != nil {
		return err
	}
	return addServer(mgr, config.BindAddress, options, tlsConfig)
}

func addServer(mgr ctrl.Manager, address string, options api.Options, tlsConfig *tls.Config) error {
	server := api.NewServer(api.ServerOptions{Address: address, Handler: api.NewHandler(options), TLS: tlsConfig, Logger: options.Logger})
	return errors.Wrap(mgr.Add(everyReplica(server.Run)), "cannot add the status REST server")
}

// newDocuments returns the builder of status documents. It adds the cache of AppContexts, which the builder reads, to the manager.
func newDocuments(mgr ctrl.Manager, config *configv1alpha1.Configuration, view *fleet.View, checks *healthChecks, store *appcontext.Store) (*api.Documents, error) {
	options := api.DocumentsOptions{Clusters: viewClusters{view, checks}, Policy: PolicyOf(config.Policy), HealthChecks: checks}
	if store != nil {
		cache := appcontext.NewCache(store, appcontext.CacheOptions{})
		if err := mgr.Add(everyReplica(cache.Run)); err != nil {
			return nil, errors.Wrap(err, "cannot add the cache of AppContexts")
		}
		options.Contexts = cache
	}
	documents := api.NewDocuments(options)
	checks.Subscribe(documents.Reset)
	return documents, nil
}

// everyReplica is a runnable that does not need leader election.
type everyReplica func(ctx context.Context) error

// Start implements manager.Runnable.
func (e everyReplica) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everyReplica) NeedLeaderElection() bool { return false }
