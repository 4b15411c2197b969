package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/access"
	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/api"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// addStatusAPI adds the status REST server to every replica: a listener for callers with a token and one for callers
// without, each unless it is disabled.
func (c *controller) addStatusAPI(tracker *observe.Tracker) error {
	config := &c.config.API
	authenticated := config.BindAddress != configv1alpha1.NoServer
	anonymous := cmp.Or(config.AnonymousBindAddress, configv1alpha1.NoServer) != configv1alpha1.NoServer
	if !authenticated && !anonymous {
		return nil
	}
	scopes := &cachedScopes{reader: c.mgr.GetClient(), informers: c.mgr.GetCache(), view: c.view, tracker: tracker}
	documents, err := c.newDocuments()
	if err != nil {
		return err
	}
	options := api.Options{
		Scopes: scopes, Documents: documents, DefaultNamespace: config.DefaultNamespace, Ready: c.view.Ready, Current: scopes.current, Version: c.Version,
		Logger: slog.New(logr.ToSlogHandler(c.logger.WithName("api"))),
	}
	if c.config.Rsync.Enabled {
		options.Deployments = rsync.Groups{Store: c.store}
	}
	if anonymous {
		if err := c.addServer(config.AnonymousBindAddress, options, nil); err != nil {
			return err
		}
	}
	if authenticated {
		if options.Guard, err = access.NewGuard(c.mgr.GetConfig(), c.mgr.GetHTTPClient()); err != nil {
			return err
		}
		var tlsConfig *tls.Config
		if config.CertFile != "" {
			if tlsConfig, err = servingTLSConfig(c.mgr, config.CertFile, config.KeyFile, "the status REST server"); err != nil {
				return err
			}
		}
		if err := c.addServer(config.BindAddress, options, tlsConfig); err != nil {
			return err
		}
	}
	return errors.Wrap(c.mgr.Add(everyReplica(scopes.watch)), "cannot watch HealthScopes")
}

func (c *controller) addServer(address string, options api.Options, tlsConfig *tls.Config) error {
	server := &api.Server{Address: address, Handler: api.NewHandler(options), TLS: tlsConfig, Logger: options.Logger}
	return errors.Wrap(c.mgr.Add(everyReplica(server.Run)), "cannot add the status REST server")
}

// newDocuments returns the builder of status documents. It adds the cache of AppContexts, which the builder reads, to the manager.
func (c *controller) newDocuments() (*api.Documents, error) {
	options := api.DocumentsOptions{Clusters: viewClusters{c.view, c.checks}, Policy: PolicyOf(c.config.Policy), HealthChecks: c.checks}
	if c.store != nil {
		cache := appcontext.NewCache(c.store, appcontext.CacheOptions{})
		if err := c.mgr.Add(everyReplica(cache.Run)); err != nil {
			return nil, errors.Wrap(err, "cannot add the cache of AppContexts")
		}
		options.Contexts = cache
	}
	documents := api.NewDocuments(options)
	c.checks.Subscribe(documents.Reset)
	return documents, nil
}

// everyReplica is a runnable that every replica runs, whether it leads or not.
type everyReplica func(ctx context.Context) error

// Start implements manager.Runnable.
func (e everyReplica) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everyReplica) NeedLeaderElection() bool { return false }
