package app

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"os"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/access"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/controllers/rsync/server"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// setupRsync adds to a manager rsync, which deploys the AppContexts of store, if it is enabled.
func setupRsync(mgr *term, config *configv1alpha1.Configuration, view *fleet.View, checks *healthChecks, store *appcontext.Store, logger logr.Logger) error {
	if !config.Rsync.Enabled {
		return nil
	}
	options := rsyncOptionsOf(config)
	options.Store, options.Access, options.HealthChecks, options.Registry, options.Logger = store, view.Access, checks, mgr, logger
	return rsync.Setup(mgr, options)
}

// rsyncOptionsOf turns a configuration, defaults filled in, into rsync's options.
func rsyncOptionsOf(config *configv1alpha1.Configuration) rsync.Options {
	return rsync.Options{DeletionOrder: config.Rsync.DeletionOrder, Policy: PolicyOf(config.Policy)}
}

// addRsyncServer adds the gRPC server of rsync to every replica, if it is enabled. store holds the AppContexts. The server
// authenticates callers if it serves TLS.
func addRsyncServer(mgr ctrl.Manager, o *Options, rsyncConfig *configv1alpha1.Rsync, store *appcontext.Store, logger logr.Logger) error {
	config := rsyncConfig.GRPC
	if !rsyncConfig.Enabled || config == nil || config.BindAddress == configv1alpha1.NoServer {
		return nil
	}
	options := server.Options{Address: config.BindAddress, Store: store, Logger: logger, Enqueue: func(ctx context.Context, id string, event deploy.Event, from string) error {
		return rsync.Enqueue(ctx, store, id, event, from, time.Now())
	}}
	if config.CertFile != "" {
		guard, err := access.NewGuard(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return err
		}
		options.Guard = guard
		if options.TLS, err = rsyncTLS(mgr, o, config, logger); err != nil {
			return err
		}
	}
	return errors.Wrap(mgr.Add(server.New(options)), "cannot add rsync's gRPC server")
}

// rsyncTLS returns the TLS configuration of the gRPC server, and adds to the manager watches on its files.
func rsyncTLS(mgr ctrl.Manager, o *Options, config *configv1alpha1.RsyncGRPC, logger logr.Logger) (*tls.Config, error) {
	tlsConfig, err := servingTLSConfig(mgr, config.CertFile, config.KeyFile, "rsync's gRPC server")
	if err != nil || config.ClientCAFile == "" {
		return tlsConfig, err
	}
	authorities, err := os.ReadFile(config.ClientCAFile)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read rsync.grpc.clientCAFile")
	}
	tlsConfig.ClientCAs, tlsConfig.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven // Callers without a certificate send a token.
	if !tlsConfig.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, errors.Errorf("the file %q of rsync.grpc.clientCAFile holds no certificate", config.ClientCAFile)
	}
	digests := map[string][sha256.Size]byte{config.ClientCAFile: sha256.Sum256(authorities)}
	return tlsConfig, errors.Wrap(mgr.Add(watchCredentials(digests, o.stop, logger)), "cannot watch rsync.grpc.clientCAFile")
}
