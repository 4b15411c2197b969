package app

import (
	"github.com/go-logr/logr"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// setupRsync adds to a manager what deploys AppContexts, if that is wanted. store is where these are.
func setupRsync(mgr *term, config *configv1alpha1.Configuration, view *fleet.View, checks *healthChecks, store *appcontext.Store, logger logr.Logger) error {
	if !config.Rsync.Enabled {
		return nil
	}
	return rsync.Setup(mgr, rsync.Options{Store: store, Access: view.Access, Policy: PolicyOf(config.Policy), HealthChecks: checks, Logger: logger})
}
