package app

import (
	"context"
	"log/slog"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope/api"
)

// addStatusAPI adds the status REST server, on every replica, unless it is turned off.
func addStatusAPI(mgr ctrl.Manager, config configv1alpha1.API, ready func() error, logger logr.Logger) error {
	if config.BindAddress == "0" {
		return nil
	}
	handler := api.NewHandler(api.Options{
		Scopes: cachedScopes{mgr.GetClient()}, DefaultNamespace: config.DefaultNamespace, Ready: ready, Version: Version(),
		Logger: slog.New(logr.ToSlogHandler(logger)),
	})
	return errors.Wrap(mgr.Add(everywhere{api.NewServer(config.BindAddress, handler, slog.New(logr.ToSlogHandler(logger)))}), "cannot add the status REST server")
}

// everywhere runs a server on every replica, and not on the leading one only.
type everywhere struct{ server *api.Server }

// Start implements manager.Runnable.
func (e everywhere) Start(ctx context.Context) error { return e.server.Run(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }

// cachedScopes reads scopes from a manager's cache.
type cachedScopes struct{ reader client.Reader }

// Get implements api.Scopes.
func (c cachedScopes) Get(ctx context.Context, namespace, name string) (*corev1alpha2.HealthScope, error) {
	var s corev1alpha2.HealthScope
	if err := c.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// List implements api.Scopes.
func (c cachedScopes) List(ctx context.Context, namespace string) ([]corev1alpha2.HealthScope, error) {
	var list corev1alpha2.HealthScopeList
	if err := c.reader.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	return list.Items, nil
}
